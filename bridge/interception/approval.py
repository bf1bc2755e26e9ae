"""letta_v1_agent on 0.14 and later: the stub needs an approval, and the answer to it carries the client's result.

The model is shown the call and the result as its tool's own return. `native` is the same with tools that are named in
the request instead of stubs (0.16.2 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaError
from bridge.interception.context import Context
from bridge.interception.held import ended_at, given_up
from bridge.interception.method import (
    NO_RESULT,
    Scene,
    begun,
    for_client,
    forcing_rules,
    refuse_stale,
    results_for,
)
from bridge.interception.parallel import settle_parallel_calls
from bridge.interception.past import Past
from bridge.letta.gateway import CallResult, Outgoing, Results, StoredMessage
from bridge.turn import (
    AgentCall,
    Binding,
    Event,
    JsonObject,
    Method,
    StubKind,
    ToolChoice,
    ToolResult,
)

# What the agent is told of its further calls when the client takes one at a time.
ONE_AT_A_TIME = "Not run: the client takes one call at a time. Make this call again if it is still needed."


class Approval:
    name: Method = "approval"
    offers_stubs = True
    stub_kind: StubKind = "placeholder"
    runs_stubs = False
    can_force = True

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        gates: list[JsonObject] = [{"type": "requires_approval", "tool_name": b.stub.name} for b in bindings]
        return [*gates, *forcing_rules(bindings, choice)]

    def client_tools(self, scene: Scene) -> Sequence[JsonObject]:
        return ()

    def play(self, scene: Scene) -> Iterator[Event]:
        settle_parallel_calls(scene)
        past, context = Past(scene), Context(scene)
        answers, repeated = _answers(scene, past)
        outgoing = self._together(scene, answers, scene.says)
        if not outgoing:
            missed = past.answer(max(repeated, past.told()), called_by_return=False)
            if missed:
                yield from missed
                return
            outgoing = [context.nudge()]
        yield from _calls_for_client(scene, self._sent(scene, past, outgoing))
        context.drop_nudge()

    def _sent(self, scene: Scene, past: Past, outgoing: Sequence[Outgoing]) -> Iterator[Event]:
        """A call that was given up still holds the agent: it is closed in the same request that brings the news."""
        try:
            return begun(self._send(scene, outgoing))
        except LettaError as fault:
            request = given_up(scene, past, fault)
            return begun(self._send(scene, self._together(scene, [_answer(scene, request, {})], outgoing)))

    def _together(self, scene: Scene, answers: Sequence[Results], messages: Sequence[Outgoing]) -> list[Outgoing]:
        """What goes out in one request. Where a message beside an answer would be lost, the answer goes out first."""
        if messages and not scene.features.takes_messages_beside_results:
            for answer in answers:
                scene.gateway.give(scene.agent.id, answer)
            return [*messages]
        return [*answers, *messages]

    def _send(self, scene: Scene, outgoing: Sequence[Outgoing]) -> Iterator[Event]:
        return scene.gateway.send(
            scene.agent.id, outgoing, by_token=scene.by_token, client_tools=self.client_tools(scene)
        )


def _answers(scene: Scene, past: Past) -> tuple[list[Results], int]:
    """The client's results for the calls that the agent waits at; or where in the past it got them already."""
    if not scene.news.results:
        return [], 0
    request = past.held()
    given = results_for(scene, request.id) if request is not None else {}
    if request is not None and given:
        return [_answer(scene, request, given)], 0
    places = [place for place in map(past.place_of, scene.news.results) if place is not None]
    if not places:
        refuse_stale(scene)
    return [], max(places, default=0)


def _answer(scene: Scene, request: StoredMessage, given: dict[int, ToolResult]) -> Results:
    """Letta takes the results of all calls or none, so those that the client left out are said to have none."""
    missing = NO_RESULT if scene.parallel or not given else ONE_AT_A_TIME
    results = []
    for call in request.calls:
        result = given.get(call.index)
        if result is None:
            results.append(CallResult(call.call_id, missing, ok=False))
        else:
            results.append(CallResult(call.call_id, result.text, ok=not result.is_error))
    return Results(tuple(results))


def _calls_for_client(scene: Scene, events: Iterator[Event]) -> Iterator[Event]:
    for event in ended_at(scene, events):
        if not (isinstance(event, AgentCall) and event.held):
            yield event
        elif event.index == 0 or scene.parallel:
            yield for_client(scene.bound[event.name], event, event.message_id)
