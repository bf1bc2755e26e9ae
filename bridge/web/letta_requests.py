"""Answers requests of Letta's own API with Letta's answer, and has what all requests of this API share."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from flask import Response, current_app, g, jsonify, request

from bridge.chats.names import Speaker
from bridge.config import Settings
from bridge.dialects.base import RequestRules
from bridge.directory import ALL, Directory, Visible
from bridge.errors import UnknownModel, UnknownPath
from bridge.letta.gateway import ForeignAnswer, ForeignCall, Gateway
from bridge.passthrough.agent_lists import fill_list_of_agents
from bridge.passthrough.calls import READING_VERBS, agent_of, changes_agent, read_call, resets_messages
from bridge.passthrough.concerned import agents_concerned
from bridge.passthrough.guard import Guard
from bridge.passthrough.letta_code import SOURCE_HEADER, is_letta_code
from bridge.passthrough.own_entries import with_own_entries
from bridge.passthrough.rights import check_right, right_of
from bridge.passthrough.tool_names import check_tool_name
from bridge.passthrough.views import LONGEST_ANSWER, Rewrite, Viewer, Views
from bridge.turn import JsonObject
from bridge.web.answer import Answers
from bridge.web.api_paths import LETTA_PATH
from bridge.web.forwarding import forwarded_response
from bridge.web.hangup import ClientLeft
from bridge.web.room import ROOM


@dataclass(frozen=True, slots=True)
class LettaParts:
    """What the routes of Letta's own API need."""

    settings: Settings
    gateway: Gateway
    directory: Directory
    answers: Answers
    guard: Guard
    views: Views
    rules: RequestRules


def visible_agents() -> Visible:
    return g.client_key.agents if g.client_key else ALL


def client_name() -> str:
    return g.client_key.name if g.client_key else ""


def speaker_in(session: str) -> Speaker:
    """Returns the client of the present request, as it speaks in the session."""
    return Speaker(client_name(), session, g.client_key.chats if g.client_key else None)


class LettaRequests:
    """Passes requests on. Messages and conversations use it, too."""

    def __init__(self, parts: LettaParts) -> None:
        self.parts = parts

    def show_message(self, message_id: str) -> Response:
        agent_id, session = self.parts.views.place_of_shown(message_id)
        if not agent_id:
            return self.pass_on()
        self.check_visible(agent_id)
        return jsonify(self.parts.views.shown_message(agent_id, speaker_in(session), message_id))

    def pass_on(self) -> Response:
        """Passes the request on with its body unpacked, because Letta reads no other."""
        with ExitStack() as until_sent:
            body = self.parts.answers.bodies.read_bytes(request, until_sent)
            response = self.forward(self.call_of_request(body))
            response.call_on_close(until_sent.pop_all().close)
        return response

    def forward(self, call: ForeignCall) -> Response:
        parts, agent_id = self.parts, agent_of(call.path)
        key = g.client_key
        self.check_right(call)
        if agent_id:
            self.check_visible(agent_id)
        if parts.views.names_stub(call.path):
            raise UnknownPath("There is no such tool.")
        with ExitStack() as until_sent:
            parts.answers.enter_passed_on(key, until_sent, only_reads=call.verb in READING_VERBS)
            check_tool_name(call, parts.gateway)
            changed = [agent_id] if changes_agent(call.verb, call.path) else agents_concerned(call, parts.gateway)
            for one in changed:
                until_sent.enter_context(parts.guard.for_change(one, ClientLeft(request.environ)))
            call = with_own_entries(call, parts.gateway.agent)
            # A change may ask a model, as a summary does, and goes on at Letta whether or not anybody waits.
            answer = parts.gateway.forward(call, patient=call.verb not in READING_VERBS)
            if resets_messages(call.path) and answer.status == 200:
                parts.guard.forget_deleted(agent_id)
            answer = fill_list_of_agents(call, answer, visible_agents(), parts.gateway.forward)
            rewrite = parts.views.rewrite_for(call, self._viewer())
            return self.respond(answer, rewrite, until_sent)

    def _viewer(self) -> Viewer:
        is_for_agents = right_of(g.client_key, self.parts.settings.letta_api) == "agents"
        return Viewer(
            client_name(), visible_agents(), is_for_agents, is_letta_code(request.headers.get(SOURCE_HEADER, ""))
        )

    def check_right(self, call: ForeignCall, body: JsonObject | None = None) -> None:
        right = right_of(g.client_key, self.parts.settings.letta_api)
        check_right(call, right, body, limited=bool(visible_agents()))

    def call_of_request(self, body: bytes | None = None) -> ForeignCall:
        path = request.path.removeprefix(LETTA_PATH)
        return read_call(request.method, path, request.query_string.decode("latin-1"), dict(request.headers), body)

    def respond(self, answer: ForeignAnswer, rewrite: Rewrite | None, until_sent: ExitStack) -> Response:
        """Returns Letta's answer as the response. `until_sent` is closed when the response was sent."""
        settings = self.parts.settings
        response = forwarded_response(
            answer,
            request,
            base_url=settings.letta_base_url,
            prefix=settings.url_prefix,
            rewrite=rewrite,
            limit=LONGEST_ANSWER,
            room=current_app.extensions[ROOM],
        )
        response.call_on_close(until_sent.pop_all().close)
        return response

    def check_visible(self, agent_id: str) -> None:
        """Raises UnknownModel for an agent that the key may not see, and for what is no agent's id."""
        if agent_of(f"/v1/agents/{agent_id}") != agent_id:
            raise UnknownModel(f"There is no agent with the id {agent_id!r:.100}.", param="agent_id")
        self.parts.directory.check_visible(agent_id, visible_agents())
