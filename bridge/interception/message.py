"""Any agent: the call's return only says that the client runs it, and the result comes as a message that quotes it."""

from __future__ import annotations

from bridge.interception.method import NO_RESULT_HERE, PreparedTurn, provisional
from bridge.interception.quoting import quoted
from bridge.interception.rewrite import Given, Rewrite
from bridge.interception.stored_messages import StoredMessages
from bridge.turn import Method, ToolResult


class Message(Rewrite):
    """As `rewrite`, but for the way back."""

    name: Method = "message"
    until_then = NO_RESULT_HERE

    def _give(self, turn: PreparedTurn, past: StoredMessages, result: ToolResult) -> Given | None:
        """A call may have the same result as one before it: only what stands behind its own return quotes it."""
        quote = quoted(result)
        returned, text = past.return_of(result) or (-1, None)
        places = [place for place, row in enumerate(past.rows) if place > returned and row.text == quote.text]
        if places:
            return Given(place=places[0])
        return None if text is None or provisional(text) is None else Given(anew=True, quoted=(quote,))
