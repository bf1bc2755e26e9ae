"""Any agent: the call's return only says that the client runs it, and the result comes as a message that quotes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.interception.given_results import GivenResults, quoted
from bridge.interception.method import NO_RESULT_HERE, Interception, PreparedTurn, provisional_text
from bridge.interception.provisional_returns import ProvisionalReturns
from bridge.interception.stored_messages import StoredMessages
from bridge.turn import AgentEvent, Binding, JsonObject, ToolChoice, ToolResult


class Message(Interception):
    name = "message"

    def __init__(self, *, gated: bool, rule_prompts: bool) -> None:
        self.runs_stubs = not gated
        self._returns = ProvisionalReturns(NO_RESULT_HERE, gated, rule_prompts)

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return self._returns.rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return self._returns.run(turn, _give)


def _give(_: PreparedTurn, stored: StoredMessages, result: ToolResult) -> GivenResults | None:
    """Quotes the result, unless a message after the call's own return does: an earlier call may have had the same."""
    quote = quoted(result)
    returned, text = stored.return_of(result) or (-1, None)
    rows = [number for number, row in enumerate(stored.rows) if number > returned and row.text == quote.text]
    if rows:
        return GivenResults(row=rows[0])
    return None if text is None or provisional_text(text) is None else GivenResults(is_new=True, quotes=(quote,))
