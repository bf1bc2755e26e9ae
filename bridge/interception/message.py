"""Any agent: the call's return only says that the client runs it, and the result comes as a message that quotes it."""

from __future__ import annotations

from bridge.interception.method import NO_RESULT_HERE, Scene, provisional
from bridge.interception.past import Past
from bridge.interception.quoting import quoted
from bridge.interception.rewrite import Given, Rewrite
from bridge.turn import Method, ToolResult


class Message(Rewrite):
    """As `rewrite`, but for the way back."""

    name: Method = "message"
    until_then = NO_RESULT_HERE

    def _give(self, scene: Scene, past: Past, result: ToolResult) -> Given | None:
        quote = quoted(result)
        if any(row.text == quote.text for row in past.rows):
            return Given()
        text = past.returned(result)
        return None if text is None or provisional(text) is None else Given(anew=True, quoted=(quote,))
