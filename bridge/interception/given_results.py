"""What becomes of the results that the client gives."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bridge.errors import InvalidRequest
from bridge.interception.method import PreparedTurn
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import Say
from bridge.turn import ToolResult


@dataclass(frozen=True, slots=True)
class GivenResults:
    """What became of the client's results. `is_new`: the agent has one now that it did not have before.

    `quotes` are messages that quote results, as the returns of their calls could not be set. `row` is the stored
    message in which the agent got a result in an earlier attempt.
    """

    is_new: bool = False
    quotes: tuple[Say, ...] = ()
    row: int = 0

    def outgoing(self, turn: PreparedTurn) -> list[Say]:
        """What is still to be sent: the quotes, then the messages of the turn."""
        return [*turn.with_turn_id([*self.quotes], "result-"), *turn.messages]


def results_for_message(turn: PreparedTurn, message_id: str) -> dict[int, ToolResult]:
    """The client's results for the calls of one message, by index. The first result for a call counts."""
    found: dict[int, ToolResult] = {}
    for result in turn.new_input.results:
        place = turn.call_ids.message_and_index(result.call_id)
        if place is not None and place[0] == message_id:
            found.setdefault(place[1], result)
    return found


def find_row_of_results(turn: PreparedTurn, stored: StoredMessages) -> int:
    """The last row in which the agent got one of these results before. Refuses results that it never got."""
    rows = [row for row in map(stored.find_row_of_result, turn.new_input.results) if row is not None]
    if not rows:
        refuse_stale_results(turn)
    return max(rows, default=0)


def refuse_stale_results(turn: PreparedTurn) -> None:
    """Results that no call waits for are ignored if a user message comes with them, and refused otherwise."""
    if turn.new_input.user_messages or turn.delivered:
        return
    named = ", ".join(repr(result.call_id)[:60] for result in turn.new_input.results[:5])
    raise InvalidRequest(
        f"No call is waiting for the result of {named}: it has been answered or given up, or it was never made by this"
        " agent. Send a user message to go on.",
        param="messages",
        code="no_pending_call",
    )


def quote_result(result: ToolResult) -> Say:
    """A message that quotes call and result as one JSON object, so that a result cannot imitate anything else."""
    content = {
        "type": "tool_result",
        "tool": result.name,
        "arguments": result.arguments,
        "status": "error" if result.is_error else "success",
        "result": result.text,
    }
    return Say("user", json.dumps(content, ensure_ascii=False))
