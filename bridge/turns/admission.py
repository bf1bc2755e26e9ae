"""What a client's key lets it do: which agents, how often, how much at once."""

from __future__ import annotations

from dataclasses import replace

from bridge.config import Settings
from bridge.directory import Directory
from bridge.errors import TooLarge
from bridge.keys import ApiKey
from bridge.limits.allowance import Allowance, Place
from bridge.stubs.remembered import RememberedStubs
from bridge.turn import ToolSpec, Turn


class Admission:
    """Without keys there is nobody to tell apart, and so nothing to limit."""

    def __init__(self, settings: Settings, directory: Directory, stubs: RememberedStubs, allowance: Allowance) -> None:
        self._settings = settings
        self._directory = directory
        self._stubs = stubs
        self._allowance = allowance

    def place(self, key: ApiKey | None) -> Place:
        """A place for a turn of this key, before anything is done for it; Busy when it may have none now."""
        if key is None:
            return Place()
        rate = self._settings.key_rate if key.rate is None else key.rate
        turns = self._settings.key_turns if key.turns is None else key.turns
        if rate:
            self._allowance.spend(key.name, rate)
        return self._allowance.begin(key.name, turns) if turns else Place()

    def admitted(self, turn: Turn, key: ApiKey | None) -> Turn:
        """The turn as the key may have it. An agent that is not for the key is not there."""
        turn = replace(turn, tools=self._checked_tools(turn))
        self._check_results(turn)
        if key is None:
            return turn
        self._directory.admit(turn.model, key.agents)
        return replace(turn, methods=key.methods)

    def _checked_tools(self, turn: Turn) -> tuple[ToolSpec, ...]:
        """The turn's tools, with their schemas checked before the agent is waited for."""
        return tuple(
            self._stubs.checked(spec, f"tools[{index}].function.parameters") for index, spec in enumerate(turn.tools)
        )

    def _check_results(self, turn: Turn) -> None:
        longest = self._settings.max_result
        for index, message in enumerate(turn.messages):
            if message.role == "tool" and len(message.text) > longest:
                where = f"messages[{index}].content"
                raise TooLarge(
                    f"`{where}` has {len(message.text)} characters; a tool's result may have {longest}."
                    " Shorten what the tool returns.",
                    param=where,
                )
