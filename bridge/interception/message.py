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
        places = [place for place, row in enumerate(past.rows) if row.text == quote.text]
        if places:
            return Given(place=places[-1])
        _, text = past.return_of(result) or (0, None)
        return None if text is None or provisional(text) is None else Given(anew=True, quoted=(quote,))
