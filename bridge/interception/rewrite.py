"""The interception method `rewrite`, for Letta up to 0.16.6, where stored messages can be changed.

A call returns a provisional text at once. When the client's result comes, it replaces this text in the stored message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.interception.method import NO_RESULT, Interception, PreparedTurn
from bridge.interception.provisional_returns import ProvisionalReturns
from bridge.turn import AgentEvent, Binding, JsonObject, ToolChoice, ToolResult


class Rewrite(Interception):
    name = "rewrite"

    def __init__(self, *, gated: bool, rule_prompts: bool) -> None:
        self.runs_stubs = not gated
        self._returns = ProvisionalReturns(NO_RESULT, gated, rule_prompts)

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return self._returns.tool_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return self._returns.run(turn, _give_result)


def _give_result(turn: PreparedTurn, message_id: str, result: ToolResult) -> bool:
    """Writes the result over the provisional text in the message. Returns whether Letta has stored it."""
    return turn.gateway.rewrite_return(turn.agent.id, message_id, result.text, not result.is_error)
