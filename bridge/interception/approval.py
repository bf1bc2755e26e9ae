"""letta_v1_agent on 0.14 and later: the stub needs an approval, and the answer to it carries the client's result.

The model is shown the call and the result as its tool's own return. `native` is the same with tools that are named in
the request instead of stubs (0.16.2 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaError
from bridge.interception.context_editor import ContextEditor
from bridge.interception.held import ended_at, given_up
from bridge.interception.method import (
    NO_RESULT,
    PreparedTurn,
    begun,
    for_client,
    forcing_rules,
    refuse_stale,
    results_for,
)
from bridge.interception.parallel_calls import settle_parallel_calls
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import CallResult, Outgoing, Results, StoredMessage
from bridge.turn import (
    AgentCall,
    AgentEvent,
    Binding,
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

    def client_tools(self, turn: PreparedTurn) -> Sequence[JsonObject]:
        return ()

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        settle_parallel_calls(turn)
        past, context = StoredMessages(turn), ContextEditor(turn)
        answers, repeated = _answers(turn, past)
        outgoing = self._together(turn, answers, turn.says)
        if not outgoing:
            missed = past.answer(max(repeated, past.told()), called_by_return=False)
            if missed:
                yield from missed
                return
            outgoing = [context.nudge()]
        yield from _calls_for_client(turn, self._sent(turn, past, outgoing))
        context.drop_nudge()

    def _sent(self, turn: PreparedTurn, past: StoredMessages, outgoing: Sequence[Outgoing]) -> Iterator[AgentEvent]:
        """A call that was given up still holds the agent: it is closed in the same request that brings the news."""
        try:
            return begun(self._send(turn, outgoing))
        except LettaError as fault:
            request = given_up(turn, past, fault)
            return begun(self._send(turn, self._together(turn, [_answer(turn, request, {})], outgoing)))

    def _together(self, turn: PreparedTurn, answers: Sequence[Results], messages: Sequence[Outgoing]) -> list[Outgoing]:
        """What goes out in one request. Where a message beside an answer would be lost, the answer goes out first."""
        if messages and not turn.features.takes_messages_beside_results:
            for answer in answers:
                turn.gateway.give(turn.agent.id, answer)
            return [*messages]
        return [*answers, *messages]

    def _send(self, turn: PreparedTurn, outgoing: Sequence[Outgoing]) -> Iterator[AgentEvent]:
        return turn.gateway.send(turn.agent.id, outgoing, by_token=turn.by_token, client_tools=self.client_tools(turn))


def _answers(turn: PreparedTurn, past: StoredMessages) -> tuple[list[Results], int]:
    """The client's results for the calls that the agent waits at; or where in the past it got them already."""
    if not turn.news.results:
        return [], 0
    request = past.held()
    given = results_for(turn, request.id) if request is not None else {}
    if request is not None and given:
        return [_answer(turn, request, given)], 0
    places = [place for place in map(past.place_of, turn.news.results) if place is not None]
    if not places:
        refuse_stale(turn)
    return [], max(places, default=0)


def _answer(turn: PreparedTurn, request: StoredMessage, given: dict[int, ToolResult]) -> Results:
    """Letta takes the results of all calls or none, so those that the client left out are said to have none."""
    missing = NO_RESULT if turn.parallel or not given else ONE_AT_A_TIME
    results = []
    for call in request.calls:
        result = given.get(call.index)
        if result is None:
            results.append(CallResult(call.call_id, missing, ok=False))
        else:
            results.append(CallResult(call.call_id, result.text, ok=not result.is_error))
    return Results(tuple(results))


def _calls_for_client(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    for event in ended_at(turn, events):
        if not (isinstance(event, AgentCall) and event.held):
            yield event
        elif event.index == 0 or turn.parallel:
            yield for_client(turn.bound[event.name], event, event.message_id)
