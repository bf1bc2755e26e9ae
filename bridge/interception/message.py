"""The interception method `message`, which works for any agent.

The return of a call only says that the client runs the call. The client's result comes as a message that quotes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.interception.given_results import GivenResults, quote_result
from bridge.interception.method import NO_RESULT_HERE, Interception, PreparedTurn, find_provisional_text
from bridge.interception.provisional_returns import ProvisionalReturns
from bridge.interception.stored_messages import StoredMessages
from bridge.turn import AgentEvent, Binding, JsonObject, ToolChoice, ToolResult


class Message(Interception):
    name = "message"

    def __init__(self, *, gated: bool, rule_prompts: bool) -> None:
        self.runs_stubs = not gated
        self._returns = ProvisionalReturns(NO_RESULT_HERE, gated, rule_prompts)

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return self._returns.tool_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return self._returns.run(turn, _give_result)


def _give_result(_: PreparedTurn, stored: StoredMessages, result: ToolResult) -> GivenResults | None:
    """Returns the message that quotes the result, or the row of a stored one. None if no call waits for the result."""
    quote = quote_result(result)
    returned, text = stored.find_return(result) or (-1, None)
    rows = [number for number, row in enumerate(stored.context_rows) if number > returned and row.text == quote.text]
    if rows:
        return GivenResults(row=rows[0])
    return None if text is None or find_provisional_text(text) is None else GivenResults(is_new=True, quotes=(quote,))
