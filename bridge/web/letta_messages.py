"""Answers messages to agents: by a turn of the bridge if they bring client tools, otherwise with Letta's answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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

        def end_run() -> None:
            self._parts.guard.end_runs(place.agent_id, place.conversation)

        with if_client_leaves(request.environ, end_run):
            hold, answer = self._forward_while_held(place, call, body, until_sent)
        return self._requests.respond(_noting_end(answer, hold, end_run), None, until_sent)

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
        self._requests.check_right(call, body)
        if right_of(g.client_key, settings.letta_api) == "agents" and not settings.image_urls:
            check_pictures(body)

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
            _, answer = self._forward_while_held(Place(agent_id), call, body, until_sent)
            return self._requests.respond(answer, None, until_sent)

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


def _noting_end(answer: ForeignAnswer, hold: AgentHold, end_run: Callable[[], None]) -> ForeignAnswer:
    """Returns the answer. When all of it was read, the hold counts as finished; when it is aborted, its run ends."""
    return replace(answer, pieces=_NotedPieces(answer.pieces, hold, end_run))


class _NotedPieces:
    """The pieces of an answer, whose end is noted."""

    def __init__(self, pieces: Pieces, hold: AgentHold, end_run: Callable[[], None]) -> None:
        self._pieces = pieces
        self._hold = hold
        self._end_run = end_run
        self.close = pieces.close

    def abort(self) -> None:
        """Ends the run first: the agent is free as soon as the pieces end, and has the next turn then."""
        self._end_run()
        self._pieces.abort()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self._hold.unfinished = False
            raise
