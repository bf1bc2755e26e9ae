"""Answers requests of Letta's own API: by a turn, by a conversation that the bridge made, or with Letta's answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from flask import Response, current_app, g, jsonify, request

from bridge.config import Settings
from bridge.dialects.base import RequestRules
from bridge.dialects.letta.answers import may_decide_on_own_tool
from bridge.dialects.letta.dialect import LettaApi
from bridge.dialects.letta.request import DEFAULT_CONVERSATION, Place, is_for_the_bridge, wants_stream
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.directory import ALL, Directory, Visible
from bridge.errors import InvalidRequest, UnknownModel, UnknownPath
from bridge.letta.gateway import AGENT_ID, ForeignAnswer, ForeignCall, Gateway, Pieces
from bridge.locks.agents import AgentHold
from bridge.passthrough.calls import READING_VERBS, agent_of, changes_agent, read_call
from bridge.passthrough.conversations import agent_of_conversation, conversation_object, new_conversation_id
from bridge.passthrough.guard import Guard
from bridge.passthrough.letta_code import SOURCE_HEADER, is_letta_code
from bridge.passthrough.plain_messages import adapted_body, check_pictures, without_conversation
from bridge.passthrough.rights import check_right, right_of
from bridge.passthrough.views import LONGEST_ANSWER, Rewrite, Viewer, Views
from bridge.turn import JsonObject, NewInput, Turn
from bridge.web.answer import Answers
from bridge.web.api_paths import LETTA_PATH
from bridge.web.bodies import receive_body
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


class LettaRequests:
    """Answers the requests: by a turn of the bridge, by a conversation that it made, or with Letta's own answer."""

    def __init__(self, parts: LettaParts) -> None:
        self._parts = parts

    # --- messages -------------------------------------------------------------------------------------

    def answer_message(self, find_place: Callable[[JsonObject], Place]) -> Response:
        """Answers a message by a turn if it brings client tools, or answers calls of such. Letta answers all others,
        and those that decide on a call of the agent's own tool. `find_place` returns the place that a body is for.
        """
        parts = self._parts
        with ExitStack() as until_sent:
            slot = parts.answers.enter(g.client_key, until_sent)
            body, sent = parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            place = find_place(body)
            self._check_visible(place.agent_id)
            own = may_decide_on_own_tool(body) and parts.guard.waits_for_own_tool(place.agent_id)
            if own or not is_for_the_bridge(body):
                return self._pass_message_on(place, body, sent, until_sent)
            g.dialect = dialect = LettaApi(parts.rules, place)
            bodies = [body]
            del body, sent  # a turn does not keep its body
            return parts.answers.answer_body(request, bodies.pop, dialect, g.client_key, slot, until_sent)

    def _pass_message_on(self, place: Place, body: JsonObject, sent: bytes, until_sent: ExitStack) -> Response:
        call = self._call(sent)
        if place.conversation != DEFAULT_CONVERSATION or agent_of(call.path) != place.agent_id:
            stream = "/stream" if wants_stream(body, place) else ""
            body = without_conversation(body)
            path = f"/v1/agents/{place.agent_id}/messages{stream}"
            call = replace(call, path=path, query="", body=json.dumps(body).encode())
        return self._pass_on_while_held(place, call, body, until_sent)

    def _pass_on_while_held(self, place: Place, call: ForeignCall, body: JsonObject, until_sent: ExitStack) -> Response:
        """Passes a message on while the agent is held. `body` is what the call's body says."""
        self._check_message(call, body)
        hold, answer = self._forward_while_held(place, call, body, until_sent)
        return self._respond(_noting_end(answer, hold), None, until_sent)

    def _forward_while_held(
        self, place: Place, call: ForeignCall, body: JsonObject, until_sent: ExitStack
    ) -> tuple[AgentHold, ForeignAnswer]:
        """Holds the agent, and sends it a message in the form that its server takes."""
        adapted = adapted_body(body, self._parts.gateway.features())
        if adapted is not body:
            call = replace(call, body=json.dumps(adapted).encode())
        message = self._parts.guard.for_message(self._speaker(place), ClientLeft(request.environ))
        return until_sent.enter_context(message), self._parts.gateway.forward(call, patient=True)

    def _check_message(self, call: ForeignCall, body: JsonObject) -> None:
        """Checks what a message that is passed on asks of the Letta server. Those with client tools are checked by the
        dialect.
        """
        settings = self._parts.settings
        self._check_right(call, body)
        if right_of(g.client_key, settings.letta_api) == "agents" and not settings.image_urls:
            check_pictures(body)

    def start_in_background(self, agent_id: str) -> Response:
        """Passes a message on whose run goes on after the answer. The hold of the agent stays unfinished, so the next
        turn waits for the run.
        """
        self._check_visible(agent_id)
        with ExitStack() as until_sent:
            slot = self._parts.answers.enter(g.client_key, until_sent)
            body, sent = self._parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            if is_for_the_bridge(body):
                raise InvalidRequest(
                    "Letta takes no `client_tools` here: send the request to /messages, as a stream if you like.",
                    param="client_tools",
                )
            call = self._call(sent)
            self._check_message(call, body)
            _, answer = self._forward_while_held(Place(agent_id), call, body, until_sent)
            return self._respond(answer, None, until_sent)

    def _speaker(self, place: Place) -> Turn:
        """Returns whose message it is, for those who wait for calls of clients."""
        return Turn(
            model=place.agent_id,
            new_input=NewInput((), opens_conversation=False),
            session=f"letta:{place.conversation}",
            client=client_name(),
            answers_all_calls=True,
            call_ids=CALL_IDS,
        )

    # --- conversations --------------------------------------------------------------------------------

    def begin_conversation(self, agent_id: str) -> Response:
        self._check_visible(agent_id)
        self._parts.gateway.agent(agent_id)
        made = new_conversation_id(agent_id, time.time())
        return jsonify(conversation_object(made, ()))

    def show_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self.pass_on()
        ids = self._parts.views.context_ids(agent_id, (client_name(), f"letta:{conversation_id}"))
        return jsonify(conversation_object(conversation_id, ids))

    def list_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self.pass_on()
        speaker = (client_name(), f"letta:{conversation_id}")
        call = replace(self._call(), path=f"/v1/agents/{agent_id}/messages")
        with ExitStack() as until_sent:
            self._parts.answers.enter(g.client_key, until_sent)
            answer = self._parts.gateway.forward(call)
            view = self._parts.views
            return self._respond(answer, lambda value: view.conversation_messages(agent_id, speaker, value), until_sent)

    def message_conversation(self, conversation_id: str) -> Response:
        if conversation_id == DEFAULT_CONVERSATION:
            return self.answer_message(lambda body: Place(str(body.get("agent_id")), streams=True))
        if agent_of(f"/v1/agents/{conversation_id}"):  # Letta's older name of an agent's default conversation
            return self.answer_message(lambda _: Place(conversation_id, streams=True))
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self._message_conversation_of_letta()
        return self.answer_message(lambda _: Place(agent_id, conversation_id, streams=True))

    def _message_conversation_of_letta(self) -> Response:
        """Passes a message to a conversation of Letta's own on, while its agent is held."""
        parts, path = self._parts, self._call().path.removesuffix("/").removesuffix("/messages")
        self._check_right(ForeignCall("GET", path))
        found = parts.gateway.forward(ForeignCall("GET", path))
        agent_id = _agent_in(found.read(LONGEST_ANSWER))
        if not agent_id:
            return self.pass_on()
        with ExitStack() as until_sent:
            slot = parts.answers.enter(g.client_key, until_sent)
            body, sent = parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            return self._pass_on_while_held(Place(agent_id, path), self._call(sent), body, until_sent)

    def cancel_conversation(self, conversation_id: str) -> Response:
        agent_id = self._agent_of(conversation_id)
        if not agent_id:
            return self.pass_on()
        return self._forward(replace(self._call(), path=f"/v1/agents/{agent_id}/messages/cancel", query=""))

    def _agent_of(self, conversation_id: str) -> str:
        """Returns the agent of a conversation that the bridge made, "" for one of Letta's own."""
        agent_id = agent_of_conversation(conversation_id)
        if agent_id:
            self._check_visible(agent_id)
        return agent_id

    def show_message(self, message_id: str) -> Response:
        agent_id = self._parts.views.agent_of_shown(message_id)
        if not agent_id:
            return self.pass_on()
        self._check_visible(agent_id)
        return jsonify(self._parts.views.shown_message(agent_id, message_id, client_name()))

    # --- everything else ------------------------------------------------------------------------------

    def pass_on(self) -> Response:
        return self._forward(self._call(receive_body(request)))

    def _forward(self, call: ForeignCall) -> Response:
        parts, agent_id = self._parts, agent_of(call.path)
        key = g.client_key
        self._check_right(call)
        if agent_id:
            self._check_visible(agent_id)
        if parts.views.names_stub(call.path):
            raise UnknownPath("There is no such tool.")
        with ExitStack() as until_sent:
            parts.answers.enter(key, until_sent)
            if changes_agent(call.verb, call.path):
                until_sent.enter_context(parts.guard.for_change(agent_id, ClientLeft(request.environ)))
            # A change may ask a model, as a summary does, and goes on at Letta whether or not anybody waits.
            answer = parts.gateway.forward(call, patient=call.verb not in READING_VERBS)
            rewrite = parts.views.rewrite_for(call.path, self._viewer())
            return self._respond(answer, rewrite, until_sent)

    def _viewer(self) -> Viewer:
        is_for_agents = right_of(g.client_key, self._parts.settings.letta_api) == "agents"
        return Viewer(
            client_name(), visible_agents(), is_for_agents, is_letta_code(request.headers.get(SOURCE_HEADER, ""))
        )

    def _check_right(self, call: ForeignCall, body: JsonObject | None = None) -> None:
        right = right_of(g.client_key, self._parts.settings.letta_api)
        check_right(call, right, body, limited=bool(visible_agents()))

    def _call(self, body: bytes | None = None) -> ForeignCall:
        path = request.path.removeprefix(LETTA_PATH)
        return read_call(request.method, path, request.query_string.decode("latin-1"), dict(request.headers), body)

    def _respond(self, answer: ForeignAnswer, rewrite: Rewrite | None, until_sent: ExitStack) -> Response:
        """Returns Letta's answer as the response. `until_sent` is closed when the response was sent."""
        settings = self._parts.settings
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

    def _check_visible(self, agent_id: str) -> None:
        """Raises UnknownModel for an agent that the key may not see, and for what is no agent's id."""
        if agent_of(f"/v1/agents/{agent_id}") != agent_id:
            raise UnknownModel(f"There is no agent with the id {agent_id!r:.100}.", param="agent_id")
        self._parts.directory.check_visible(agent_id, visible_agents())


def _agent_in(conversation: bytes) -> str:
    """Returns the id of the agent that Letta names in its answer about a conversation, "" if it names none."""
    try:
        value = json.loads(conversation)
    except ValueError:
        return ""
    agent_id = value.get("agent_id") if isinstance(value, dict) else None
    return agent_id if isinstance(agent_id, str) and AGENT_ID.fullmatch(agent_id) else ""


def _noting_end(answer: ForeignAnswer, hold: AgentHold) -> ForeignAnswer:
    """Returns the answer; when all of it was read, the hold counts as finished."""
    return replace(answer, pieces=_NotedPieces(answer.pieces, hold))


class _NotedPieces:
    """The pieces of an answer, whose end is noted."""

    def __init__(self, pieces: Pieces, hold: AgentHold) -> None:
        self._pieces = pieces
        self._hold = hold
        self.close, self.abort = pieces.close, pieces.abort

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self._hold.unfinished = False
            raise
