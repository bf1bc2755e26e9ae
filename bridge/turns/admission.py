"""What a client's key lets it do: which agents, how often, how much at once. And what no request may do."""

from __future__ import annotations

from dataclasses import replace

from bridge.config import Settings
from bridge.directory import Directory
from bridge.keys import ApiKey
from bridge.limits.allowance import Allowance, Place
from bridge.limits.gate import Gate, Slot
from bridge.stubs.remembered import RememberedStubs
from bridge.turn import Turn


class Admission:
    """Without keys the clients are not told apart, and so nothing is limited but the turns of the worker."""

    def __init__(self, settings: Settings, directory: Directory, allowance: Allowance, stubs: RememberedStubs) -> None:
        self._settings = settings
        self._directory = directory
        self._allowance = allowance
        self._stubs = stubs
        self._gate = Gate(settings.turns_at_once)

    def enter(self, key: ApiKey | None) -> Slot:
        """A slot for a turn of this key, before anything is done for it; Busy or TooManyTurns when none is free."""
        place = self._place(key)
        try:
            return self._gate.enter(place.leave)
        except BaseException:
            place.leave()
            raise

    def _place(self, key: ApiKey | None) -> Place:
        if key is None:
            return Place()
        rate = self._settings.key_rate if key.rate is None else key.rate
        turns = self._settings.key_turns if key.turns is None else key.turns
        if rate:
            self._allowance.spend(key.name, rate)
        return self._allowance.begin(key.name, turns) if turns else Place()

    def admitted(self, turn: Turn, key: ApiKey | None) -> Turn:
        """The turn as the key may have it, with its tools checked, before the agent is waited for.

        An agent that the key may not see is refused as one that does not exist.
        """
        checked = tuple(
            self._stubs.checked(spec, f"tools[{index}].function.parameters") for index, spec in enumerate(turn.tools)
        )
        turn = replace(turn, tools=checked)
        if key is None:
            return turn
        self._directory.admit(turn.model, key.agents)
        return replace(turn, client=key.name, methods=key.methods)
