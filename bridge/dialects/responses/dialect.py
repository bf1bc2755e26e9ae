"""Translates OpenAI's Responses API: the parts of this folder as one dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.dialects.base import ParsedRequest, RequestRules
from bridge.dialects.openai.errors import error_object
from bridge.dialects.openai.finish import finish_reason
from bridge.dialects.responses.items import input_items, items_before_answer
from bridge.dialects.responses.reply import ResponsesReply
from bridge.dialects.responses.request import parse_request
from bridge.dialects.responses.response import ResponseObject
from bridge.errors import BridgeError
from bridge.turn import JsonObject, Turn

# Fields of a request that change the form of the reply, or whether it is kept, but not what the agent is asked.
_FORM = ("stream", "stream_options", "store", "include")

# Gets the items of a request's input, and returns what gets the finished response.
Keeper = Callable[[list[Any]], Callable[[JsonObject], None]]


class Responses:
    name = "responses"

    def __init__(self, rules: RequestRules, keeper: Keeper = lambda items: _forget) -> None:
        """`keeper` is asked for each response that the client wants to be kept."""
        self._rules = rules
        self._keeper = keeper

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        turn, tools = parse_request(body, self._rules, aside=aside)
        finished = self._keeper(input_items(body)) if body.get("store") is not False else _forget
        return ParsedRequest(turn, ResponsesReply(ResponseObject(body, turn.model), tools, finished))

    def identity_fields(self, body: JsonObject, turn: Turn) -> JsonObject:
        """Leaves out the beginning of a broken answer, too: with it, Codex sends a request again that failed."""
        fields = {name: value for name, value in body.items() if name not in _FORM}
        return fields if turn.aside else {**fields, "input": items_before_answer(input_items(body))}

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        return finish_reason(stop_reason, called)

    def error(self, failure: BridgeError) -> JsonObject:
        """Returns OpenAI's error object. What the other rooms call `messages` is the field `input` here."""
        body = error_object(failure)
        if body["error"]["param"] != "messages":
            return body
        return {"error": {**body["error"], "param": "input"}}


def _forget(response: JsonObject) -> None:
    """Keeps nothing."""
