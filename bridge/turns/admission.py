"""Checks whether a request may become a turn: its API key's limits and agents, its tools, the form of its reply."""

from __future__ import annotations

from dataclasses import replace

from bridge.config import Settings
from bridge.directory import Directory
from bridge.errors import TooManyRequests, TooManyTurns
from bridge.keys import ApiKey
from bridge.limits.allowance import Allowance, KeySlot
from bridge.limits.gate import Gate, Slot
from bridge.reply_format.checker import check_schema
from bridge.stubs.cache import StubCache
from bridge.turn import Turn


class Admission:
    """Checks requests before they become turns. Without API keys, only the turns of the whole worker are limited."""

    def __init__(self, settings: Settings, directory: Directory, allowance: Allowance, stubs: StubCache) -> None:
        self._settings = settings
        self._directory = directory
        self._allowance = allowance
        self._stubs = stubs
        self._gate = Gate(settings.turns_at_once, self._too_many_turns)
        self._gate_of_passed_on = Gate(settings.passed_on_at_once, self._too_many_passed_on)

    def count_request(self, key: ApiKey | None) -> None:
        """Counts a request of the API key, whatever it asks for. Raises Busy if the key has no request left."""
        if key is None:
            return
        rate = self._settings.key_rate if key.rate is None else key.rate
        if rate:  # a limit of 0 is no limit
            self._allowance.count_request(key.name, rate)

    def enter(self, key: ApiKey | None) -> Slot:
        """Takes a slot for a turn of the key, before anything else is done. Raises Busy or TooManyTurns at a limit."""
        return _enter(self._gate, self._key_slot(key))

    def enter_passed_on(self, key: ApiKey | None, *, only_reads: bool) -> Slot:
        """Takes a slot for a request that is passed on to Letta and is no message. One that `only_reads` does not count
        for the key's turns; any other may wait for an agent, as turns do. Raises Busy or TooManyRequests at a limit.
        """
        return _enter(self._gate_of_passed_on, KeySlot() if only_reads else self._key_slot(key))

    def _too_many_turns(self) -> TooManyTurns:
        most = self._settings.turns_at_once
        return TooManyTurns(f"The bridge runs as many turns as it can: {most} (BRIDGE_MAX_TURNS). Try again soon.")

    def _too_many_passed_on(self) -> TooManyRequests:
        most = self._settings.passed_on_at_once
        return TooManyRequests(f"The bridge passes on as many requests to Letta as it can: {most}. Try again soon.")

    def _key_slot(self, key: ApiKey | None) -> KeySlot:
        """Returns a slot for a turn of the API key. A limit of 0 is no limit."""
        if key is None:
            return KeySlot()
        turns = self._settings.key_turns if key.turns is None else key.turns
        return self._allowance.take_slot(key.name, turns) if turns else KeySlot()

    def admit(self, turn: Turn, key: ApiKey | None) -> Turn:
        """Returns the turn with its checked tools. An agent that the key may not use counts as unknown."""
        checked = self._stubs.check_tools(turn.tools, spends_work=len(turn.tools) <= self._settings.most_attached)
        if turn.reply_format is not None:
            check_schema(turn.reply_format, self._settings.max_schema)
        if key is None:
            return replace(turn, tools=checked)
        self._directory.check_visible(turn.model, key.agents)
        return replace(
            turn,
            tools=checked,
            client=key.name,
            methods=key.methods,
            search_above=key.search,
            chats=key.chats,
            visible_agents=key.agents,
        )


def _enter(gate: Gate, key_slot: KeySlot) -> Slot:
    """Takes a slot, with which the key's is left, too."""
    try:
        return gate.enter(key_slot.leave)
    except BaseException:
        key_slot.leave()
        raise
