"""The routes of Letta's own API below /letta: message requests, conversations, and everything that is passed on."""

from __future__ import annotations

from flask import Blueprint, Response, g, jsonify, request

from bridge.dialects.letta.dialect import LettaApi
from bridge.dialects.letta.request import Place
from bridge.errors import InvalidRequest, UnknownPath
from bridge.letta.foreign import VIA
from bridge.passthrough.calls import VERBS
from bridge.passthrough.rights import right_of
from bridge.trace import current_trace
from bridge.web.api_paths import LETTA_PATH
from bridge.web.letta_conversations import LettaConversations
from bridge.web.letta_messages import LettaMessages
from bridge.web.letta_requests import LettaParts, LettaRequests
from bridge.web.other_sites import refuse_pages
from bridge.web.security import client_key


def letta_routes(parts: LettaParts) -> Blueprint:
    """Returns the routes. They need a client's key if the settings have keys, and a key that may use them."""
    api = Blueprint("letta", __name__, url_prefix=LETTA_PATH)
    settings, requests = parts.settings, LettaRequests(parts)

    @api.before_request
    def check_key() -> None:
        g.dialect = LettaApi(parts.rules, Place(""))
        if VIA in request.headers.get("Via", ""):
            raise InvalidRequest(
                "This request comes from a bridge: its LETTA_BASE_URL leads to a bridge, not to Letta.",
                code="loop_detected",
            )
        if not settings.api_keys:
            refuse_pages(request, settings.cors_origins)
        g.client_key = client_key(request, settings.api_keys)
        current_trace().key_name = g.client_key.name if g.client_key else ""
        parts.answers.admission.count_request(g.client_key)
        if right_of(g.client_key, settings.letta_api) == "off":
            raise UnknownPath.no_such_route()

    messages = LettaMessages(requests)
    _add_messages(api, messages)
    _add_conversations(api, LettaConversations(requests, messages))

    @api.get("/v1/messages/<message_id>")
    def show_message(message_id: str) -> Response:
        return requests.show_message(message_id)

    @api.post("/v1/tools/add-base-tools")
    def add_base_tools() -> Response:
        """Programs ask for Letta's own tools at their start. A key for agents only is told that nothing was added."""
        may_change_tools = right_of(g.client_key, settings.letta_api) == "all"
        return requests.pass_on() if may_change_tools else jsonify([])

    @api.route("/<path:rest>", methods=[*VERBS])
    def pass_on(rest: str) -> Response:
        return requests.pass_on()

    return api


def _add_messages(api: Blueprint, messages: LettaMessages) -> None:
    @api.post("/v1/agents/<agent_id>/messages")
    def message_agent(agent_id: str) -> Response:
        return messages.answer_message(lambda _: Place(agent_id))

    @api.post("/v1/agents/<agent_id>/messages/stream")
    def stream_message(agent_id: str) -> Response:
        return messages.answer_message(lambda _: Place(agent_id, always_streams=True))

    @api.post("/v1/chat/completions")
    @api.post("/v1/groups/<_>/messages")
    @api.post("/v1/groups/<_>/messages/stream")
    @api.post("/v1/voice-beta/<_>/chat/completions")
    def message_others(_: str = "") -> Response:
        return messages.message_others()

    @api.post("/v1/agents/<agent_id>/messages/async")
    def message_in_background(agent_id: str) -> Response:
        return messages.start_in_background(agent_id)


def _add_conversations(api: Blueprint, conversations: LettaConversations) -> None:
    """Adds the routes of conversations that the bridge made. Those of Letta's own are passed on."""

    @api.post("/v1/conversations")
    def begin_conversation() -> Response:
        return conversations.begin_conversation(request.args.get("agent_id", ""))

    @api.get("/v1/conversations/<conversation_id>")
    def show_conversation(conversation_id: str) -> Response:
        return conversations.show_conversation(conversation_id)

    @api.get("/v1/conversations/<conversation_id>/messages")
    def list_conversation(conversation_id: str) -> Response:
        return conversations.list_conversation(conversation_id)

    @api.post("/v1/conversations/<conversation_id>/messages")
    def message_conversation(conversation_id: str) -> Response:
        return conversations.message_conversation(conversation_id)

    @api.post("/v1/conversations/<conversation_id>/cancel")
    def cancel_conversation(conversation_id: str) -> Response:
        return conversations.cancel_conversation(conversation_id)
