"""Translates OpenAI's Chat Completions API: the parts of this folder as one dialect."""

from __future__ import annotations

from bridge.dialects.base import ParsedRequest, RequestRules
from bridge.dialects.chat_completions.reply import ChatReply
from bridge.dialects.chat_completions.request import KnownRequests, parse_chat_request, wants_usage
from bridge.dialects.openai.errors import error_object
from bridge.dialects.openai.finish import finish_reason
from bridge.dialects.openai.known_transcripts import digest_items
from bridge.errors import BridgeError
from bridge.turn import JsonObject, Turn

# Fields of a request that change the form of the reply, but not what the agent is asked.
_FORM = ("stream", "stream_options")


class ChatCompletions:
    name = "chat_completions"

    def __init__(self, rules: RequestRules) -> None:
        self._rules = rules
        self._known = KnownRequests()

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        turn = parse_chat_request(body, self._rules, self._known, aside=aside)
        return ParsedRequest(turn, ChatReply(turn.model, include_usage=wants_usage(body)))

    def identity_fields(self, body: JsonObject, turn: Turn) -> JsonObject:
        """Leaves out `stream` and `stream_options`: sent again without a stream, a request gets the same turn. Digests
        stand for the messages and the tools, which may be large.
        """
        fields = {name: value for name, value in body.items() if name not in _FORM}
        fields["messages"] = turn.sent or digest_items(body["messages"])
        if isinstance(body.get("tools"), list):
            fields["tools"] = self._known.tools.digest(body["tools"])
        return fields

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        return finish_reason(stop_reason, called)

    def error(self, failure: BridgeError) -> JsonObject:
        return error_object(failure)
