"""The interception method `message`, which works for any agent.

The return of a call only says that the client runs the call. The client's result comes as a message that quotes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.interception.method import NO_RESULT_HERE, Interception, PreparedTurn
from bridge.interception.provisional_returns import ProvisionalReturns
from bridge.turn import AgentEvent, Binding, JsonObject, ToolChoice


class Message(Interception):
    name = "message"

    def __init__(self, *, gated: bool, rule_prompts: bool) -> None:
        self.runs_stubs = not gated
        self._returns = ProvisionalReturns(NO_RESULT_HERE, gated, rule_prompts)

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return self._returns.tool_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return self._returns.run(turn, lambda *_: False)
