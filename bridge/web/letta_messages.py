"""Answers messages to agents: by a turn of the bridge if they bring client tools, otherwise with Letta's answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from flask import Response, g, request

from bridge.dialects.letta.answers import may_decide_on_own_tool
from bridge.dialects.letta.dialect import LettaApi
from bridge.dialects.letta.request import DEFAULT_CONVERSATION, Place, is_for_the_bridge, wants_stream
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import InvalidRequest
from bridge.letta.gateway import ForeignAnswer, ForeignCall, Pieces
from bridge.locks.agents import AgentHold
from bridge.passthrough.calls import agent_of
from bridge.passthrough.concerned import agents_concerned
from bridge.passthrough.plain_messages import adapted_body, check_pictures, without_conversation
from bridge.passthrough.rights import right_of
from bridge.turn import JsonObject, NewInput, Turn
from bridge.web.hangup import ClientLeft, if_client_leaves
from bridge.web.letta_requests import LettaRequests, client_name


class LettaMessages:
    """Answers messages. Those that Letta answers itself have the agent to themselves until their answer was sent."""

    def __init__(self, requests: LettaRequests) -> None:
        self._requests = requests
        self._parts = requests.parts

    def answer_message(self, find_place: Callable[[JsonObject], Place]) -> Response:
        """Answers a message by a turn if it brings client tools, or answers calls of such. Letta answers all others,
        and those that decide on a call of the agent's own tool. `find_place` returns the place that a body is for.
        """
        parts = self._parts
        with ExitStack() as until_sent:
            slot = parts.answers.enter(g.client_key, until_sent)
            body, sent = parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            place = find_place(body)
            self._requests.check_visible(place.agent_id)
            own = may_decide_on_own_tool(body) and parts.guard.waits_for_own_tool(place.agent_id)
            if own or not is_for_the_bridge(body):
                return self._pass_message_on(place, body, sent, until_sent)
            g.dialect = dialect = LettaApi(parts.rules, place)
            bodies = [body]
            del body, sent  # a turn does not keep its body
            return parts.answers.answer_body(request, bodies.pop, dialect, g.client_key, slot, until_sent)

    def _pass_message_on(self, place: Place, body: JsonObject, sent: bytes, until_sent: ExitStack) -> Response:
        call = self._requests.call_of_request(sent)
        if place.conversation != DEFAULT_CONVERSATION or agent_of(call.path) != place.agent_id:
            stream = "/stream" if wants_stream(body, place) else ""
            body = without_conversation(body)
            path = f"/v1/agents/{place.agent_id}/messages{stream}"
            call = replace(call, path=path, query="", body=json.dumps(body).encode())
        return self.pass_on_while_held(place, call, body, until_sent)

    def pass_on_while_held(self, place: Place, call: ForeignCall, body: JsonObject, until_sent: ExitStack) -> Response:
        """Passes a message on while the agent is held. `body` is what the call's body says."""
        self._check_message(call, body)
        return self._pass_on_to([place], call, body, until_sent)

    def _pass_on_to(
        self, places: Sequence[Place], call: ForeignCall, body: JsonObject, until_sent: ExitStack
    ) -> Response:
        def end_runs() -> None:
            for place in places:
                self._parts.guard.end_runs(place.agent_id, place.conversation)

        holds = self._hold(places, until_sent)
        with if_client_leaves(request.environ, end_runs):
            answer = self._send(call, body)
        return self._requests.respond(_noting_end(answer, holds, end_runs), None, until_sent)

    def _hold(self, places: Sequence[Place], until_sent: ExitStack) -> list[AgentHold]:
        gone = ClientLeft(request.environ)
        speakers = map(self._speaker, places)
        return [until_sent.enter_context(self._parts.guard.for_message(speaker, gone)) for speaker in speakers]

    def _send(self, call: ForeignCall, body: JsonObject) -> ForeignAnswer:
        """Sends a message in the form that the server takes. Its agents are held."""
        adapted = adapted_body(body, self._parts.gateway.features())
        if adapted is not body:
            call = replace(call, body=json.dumps(adapted).encode())
        return self._parts.gateway.forward(call, patient=True)

    def _check_message(self, call: ForeignCall, body: JsonObject) -> None:
        """Checks what a message that is passed on asks of the Letta server. Those with client tools are checked by the
        dialect.
        """
        settings = self._parts.settings
        self._requests.check_right(call, body)
        if right_of(g.client_key, settings.letta_api) == "agents" and not settings.image_urls:
            check_pictures(body)

    def message_others(self) -> Response:
        """Passes on a message to agents that are named elsewhere than in the path of an agent or a conversation, such
        as those of a group. Each of them is held as for a message of its own.
        """
        parts = self._parts
        with ExitStack() as until_sent:
            slot = parts.answers.enter(g.client_key, until_sent)
            body, sent = parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            if is_for_the_bridge(body):
                raise InvalidRequest(
                    "Letta passes over `client_tools` here: send the message to the agent itself.", param="client_tools"
                )
            call = self._requests.call_of_request(sent)
            self._check_message(call, body)
            places = [Place(agent_id) for agent_id in agents_concerned(call, parts.gateway)]
            return self._pass_on_to(places, call, body, until_sent)

    def start_in_background(self, agent_id: str) -> Response:
        """Passes a message on whose run goes on after the answer. The hold of the agent stays unfinished, so the next
        turn waits for the run.
        """
        self._requests.check_visible(agent_id)
        with ExitStack() as until_sent:
            slot = self._parts.answers.enter(g.client_key, until_sent)
            body, sent = self._parts.answers.bodies.read_with_bytes(request, until_sent, slot.until_free)
            if is_for_the_bridge(body):
                raise InvalidRequest(
                    "Letta takes no `client_tools` here: send the request to /messages, as a stream if you like.",
                    param="client_tools",
                )
            call = self._requests.call_of_request(sent)
            self._check_message(call, body)
            (hold,) = self._hold([Place(agent_id)], until_sent)
            answer = self._send(call, body)
            hold.unfinished = answer.status < 400
            return self._requests.respond(answer, None, until_sent)

    def _speaker(self, place: Place) -> Turn:
        """Returns whose message it is, for those who wait for calls of clients. A conversation of Letta's own, which is
        named by its path, has a context of its own: to the agent's chats, it is nothing new.
        """
        of_letta = place.conversation.startswith("/")
        return Turn(
            model=place.agent_id,
            new_input=NewInput((), opens_conversation=False),
            session=f"letta:{place.conversation}",
            client=client_name(),
            chats="one" if of_letta else g.client_key and g.client_key.chats,
            answers_all_calls=True,
            call_ids=CALL_IDS,
        )


def _noting_end(answer: ForeignAnswer, holds: Sequence[AgentHold], end_runs: Callable[[], None]) -> ForeignAnswer:
    """Returns the answer. When all of it was read, the holds count as finished; when it is aborted, its runs end."""
    return replace(answer, pieces=_NotedPieces(answer.pieces, holds, end_runs))


class _NotedPieces:
    """The pieces of an answer, whose end is noted."""

    def __init__(self, pieces: Pieces, holds: Sequence[AgentHold], end_runs: Callable[[], None]) -> None:
        self._pieces = pieces
        self._holds = holds
        self._end_runs = end_runs
        self.close = pieces.close

    def abort(self) -> None:
        """Ends the runs first: the agents are free as soon as the pieces end, and may have their next turns then."""
        self._end_runs()
        self._pieces.abort()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            for hold in self._holds:
                hold.unfinished = False
            raise
