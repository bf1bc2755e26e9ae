"""letta_v1_agent on 0.14 and later: the stub needs an approval, and the answer to it carries the client's result.

The model is shown the call and the result as its tool's own return. `native` is the same with tools that are named in
the request instead of stubs (0.16.2 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaConflict
from bridge.interception.method import (
    NO_RESULT,
    Scene,
    begun,
    for_client,
    forcing_rules,
    is_for_clients,
    pending_request,
    refuse_stale,
    results_for,
    waits_for_approval,
)
from bridge.letta.failures import WAITS_FOR_APPROVAL
from bridge.letta.gateway import CallResult, Outgoing, Results, StoredMessage
from bridge.turn import AgentCall, Binding, Event, JsonObject, Method, StubKind, ToolChoice


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
        yield from _calls_for_client(scene, self._sent(scene, self._outgoing(scene)))

    def _outgoing(self, scene: Scene) -> list[Outgoing]:
        if not scene.news.results:
            return [*scene.says]
        request = pending_request(scene)
        given = results_for(scene, request.id) if request is not None else {}
        if request is None or not given or not is_for_clients(scene, request):
            refuse_stale(scene)
            return [*scene.says]
        answers = []
        for call in request.calls:
            result = given.get(call.index)
            if result is None:
                answers.append(CallResult(call.call_id, NO_RESULT, ok=False))
            else:
                answers.append(CallResult(call.call_id, result.text, ok=not result.is_error))
        return [Results(tuple(answers)), *scene.says]

    def _sent(self, scene: Scene, outgoing: Sequence[Outgoing]) -> Iterator[Event]:
        """A call that was given up still holds the agent: it is closed in the same request that brings the news."""
        try:
            return begun(self._send(scene, outgoing))
        except LettaConflict as fault:
            request = pending_request(scene) if waits_for_approval(fault) else None
            if request is None or not is_for_clients(scene, request):
                raise
            return begun(self._send(scene, [_given_up(request), *scene.says]))

    def _send(self, scene: Scene, outgoing: Sequence[Outgoing]) -> Iterator[Event]:
        return scene.gateway.send(
            scene.agent.id, outgoing, by_token=scene.by_token, client_tools=self.client_tools(scene)
        )


def _given_up(request: StoredMessage) -> Results:
    return Results(tuple(CallResult(call.call_id, NO_RESULT, ok=False) for call in request.calls))


def _calls_for_client(scene: Scene, events: Iterator[Event]) -> Iterator[Event]:
    bound = scene.bound
    foreign = ""
    for event in events:
        if isinstance(event, AgentCall) and event.held:
            if event.name in bound:
                yield for_client(bound[event.name], event, event.message_id)
            else:
                foreign = event.name
        else:
            yield event
    if foreign:
        raise LettaConflict(
            f"The agent waits for the approval of its own tool {foreign!r}. Approve or deny it in Letta, then go on.",
            code=WAITS_FOR_APPROVAL,
        )
