"""Translates Letta's own API with client tools: the parts of this folder as one dialect."""

from __future__ import annotations

from bridge.dialects.base import ParsedRequest, RequestRules
from bridge.dialects.letta.reply import LettaReply
from bridge.dialects.letta.request import Place, parse_request
from bridge.dialects.openai.finish import finish_reason
from bridge.errors import BridgeError, CallsUnanswered
from bridge.turn import JsonObject, Turn

# Fields of a request that say what the agent is asked. All others change the form of the reply, or nothing.
_ASKED = ("messages", "input", "client_tools", "client_skills")


class LettaApi:
    """The dialect for the message requests to one place. Without a place it only writes errors."""

    name = "letta"

    def __init__(self, rules: RequestRules, place: Place) -> None:
        self._rules = rules
        self._place = place

    def parse(self, body: JsonObject, *, aside: bool = False) -> ParsedRequest:
        """Ignores `aside`: in Letta's own API, the agent's server has the conversation, so nothing is aside."""
        turn, answers = parse_request(body, self._place, self._rules)
        by_token = turn.stream and body.get("stream_tokens") is True
        return ParsedRequest(turn, LettaReply(answers, by_token=by_token))

    def identity_fields(self, body: JsonObject, turn: Turn) -> JsonObject:
        asked = {name: body[name] for name in _ASKED if name in body}
        return {**asked, "conversation": self._place.conversation}

    def finish_reason(self, stop_reason: str, called: bool) -> str:
        return finish_reason(stop_reason, called)

    def error(self, failure: BridgeError) -> JsonObject:
        return error_body(failure)


def error_body(failure: BridgeError) -> JsonObject:
    """Returns an error as Letta writes it, with the bridge's code beside it."""
    if isinstance(failure, CallsUnanswered):
        pending = {"code": failure.code, "message": failure.message, "pending_request_id": failure.param}
        return {"detail": pending}
    return {"detail": failure.message, "code": failure.code, "param": failure.param}
