"""Matches the tool results that the client sends with the agent's calls. All interception methods use this module."""

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
    """What became of the client's results. `quotes`: messages to send, for results that cannot become the return of
    their call. `row`: the row of `context_rows` in which the agent got a result in an earlier attempt, or 0.
    """

    is_new: bool = False
    quotes: tuple[Say, ...] = ()
    row: int = 0

    def outgoing(self, turn: PreparedTurn) -> list[Say]:
        """Returns the messages that are still to be sent to the agent: the quotes, then the messages of the turn."""
        return [*turn.with_turn_id([*self.quotes], "result-"), *turn.messages]


def results_for_message(turn: PreparedTurn, message_id: str) -> dict[int, ToolResult]:
    """Returns the client's results for the calls in a Letta message, by call index: the first result for each call."""
    found: dict[int, ToolResult] = {}
    for result in turn.new_input.results:
        place = turn.call_ids.message_and_index(result.call_id)
        if place is not None and place[0] == message_id:
            found.setdefault(place[1], result)
    return found


def find_row_of_results(turn: PreparedTurn, stored: StoredMessages) -> int:
    """Returns the last row in which the agent got a result of this turn before; without one 0, or refuses the turn."""
    rows = [row for row in map(stored.find_row_of_result, turn.new_input.results) if row is not None]
    if not rows:
        refuse_stale_results(turn)
    return max(rows, default=0)


def refuse_stale_results(turn: PreparedTurn) -> None:
    """Raises InvalidRequest because no call waits for the client's results. Ignores the results if a user message came
    with them, or if an earlier attempt delivered the turn's messages.
    """
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
    """Returns a user message that quotes a call and its result. In JSON, a result cannot look like another message."""
    content = {
        "type": "tool_result",
        "tool": result.name,
        "arguments": result.arguments,
        "status": "error" if result.is_error else "success",
        "result": result.text,
    }
    return Say("user", json.dumps(content, ensure_ascii=False))
