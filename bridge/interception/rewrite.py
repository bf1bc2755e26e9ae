"""The interception method `rewrite`, for Letta up to 0.16.6, where stored messages can be changed.

A call returns a provisional text at once. When the client's result comes, it replaces this text in the stored message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.interception.given_results import GivenResults, quote_result
from bridge.interception.method import NO_RESULT, Interception, PreparedTurn, find_provisional_text
from bridge.interception.provisional_returns import ProvisionalReturns
from bridge.interception.stored_messages import StoredMessages
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


def _give_result(turn: PreparedTurn, stored: StoredMessages, result: ToolResult) -> GivenResults | None:
    """Writes the result over the provisional text of its call. If Letta does not store the result, returns a quote to
    send; if it is stored already, its row. None if no call waits for it.
    """
    message_id, _ = turn.call_ids.message_and_index(result.call_id) or ("", 0)
    if message_id != turn.last_message_id:
        row, text = stored.find_return(result) or (0, None)
        if text is None or find_provisional_text(text) is None:
            return GivenResults(row=row) if text == result.text else None
    rewritten = turn.gateway.rewrite_return(turn.agent.id, message_id, result.text, not result.is_error)
    return GivenResults(is_new=True, quotes=() if rewritten else (quote_result(result),))
