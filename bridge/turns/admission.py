"""Checks what a client may do: which agents its key is for, how often and how much at once, and its tools."""

from __future__ import annotations

from dataclasses import replace

from bridge.config import Settings
from bridge.directory import Directory
from bridge.keys import ApiKey
from bridge.limits.allowance import Allowance, KeySlot
from bridge.limits.gate import Gate, Slot
from bridge.stubs.cache import StubCache
from bridge.turn import Turn


class Admission:
    """Without keys, clients can't be told apart, and only the turns of the worker are limited."""

    def __init__(self, settings: Settings, directory: Directory, allowance: Allowance, stubs: StubCache) -> None:
        self._settings = settings
        self._directory = directory
        self._allowance = allowance
        self._stubs = stubs
        self._gate = Gate(settings.turns_at_once)

    def enter(self, key: ApiKey | None) -> Slot:
        """Takes a slot for a turn of this key, before anything else is done. Raises Busy or TooManyTurns."""
        key_slot = self._key_slot(key)
        try:
            return self._gate.enter(key_slot.leave)
        except BaseException:
            key_slot.leave()
            raise

    def _key_slot(self, key: ApiKey | None) -> KeySlot:
        if key is None:
            return KeySlot()
        rate = self._settings.key_rate if key.rate is None else key.rate
        turns = self._settings.key_turns if key.turns is None else key.turns
        if rate:
            self._allowance.count_request(key.name, rate)
        return self._allowance.take_slot(key.name, turns) if turns else KeySlot()

    def admit(self, turn: Turn, key: ApiKey | None) -> Turn:
        """Returns the turn with its tools checked and the restrictions of the key, before it waits for its agent.

        An agent that the key may not see is refused like one that does not exist.
        """
        checked = tuple(
            self._stubs.check_tool(spec, f"tools[{index}].function.parameters") for index, spec in enumerate(turn.tools)
        )
        turn = replace(turn, tools=checked)
        if key is None:
            return turn
        self._directory.check_visible(turn.model, key.agents)
        return replace(turn, client=key.name, methods=key.methods)
