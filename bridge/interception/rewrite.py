"""The agent gets a provisional return at once, and the client's result replaces it in the agent's stored messages.

Gated (0.11.7 to 0.16.6): the stub needs an approval. It is denied as soon as the agent calls it, which asks no model
and runs nothing, and what the denial left behind is cut from the context. So the agent is never held: whatever happens
to the client or the bridge, its next message is taken. Against denying when the result comes, it saves a call in the
turn that the user waits for, and leaves nothing to recover from.

Ungated (up to 0.11.6, and `letta_v1_agent` on 0.13.0): the stub runs on the server, returns its fixed text, and an
exit_loop rule ends the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bridge.errors import LettaConflict
from bridge.interception.context import Context
from bridge.interception.method import (
    GO_ON,
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
from bridge.interception.quoting import quoted
from bridge.letta.gateway import Outgoing, Say
from bridge.turn import AgentCall, AgentReturn, Binding, Event, JsonObject, Method, Stopped, StubKind, ToolChoice

# Letta tells the model of every exit rule, and up to 0.11 fails beyond 5,000 characters of it, some 50 tools: so the
# template that it says this by renders to nothing. Later versions ignore it and have no such limit.
NO_WORDS = "{# #}"


@dataclass(frozen=True, slots=True)
class Given:
    """What became of the client's results: a return of the agent's, or messages that quote them."""

    return_id: str = ""
    quoted: tuple[Say, ...] = ()


class Rewrite:
    name: Method = "rewrite"
    offers_stubs = True
    stub_kind: StubKind = "placeholder"
    can_force = True

    def __init__(self, *, gated: bool, rule_prompts: bool = False) -> None:
        self._gated = gated
        self.runs_stubs = not gated
        stop: JsonObject = {"type": "requires_approval" if gated else "exit_loop"}
        self._stop = stop if gated or not rule_prompts else {**stop, "prompt_template": NO_WORDS}

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        stops = [{**self._stop, "tool_name": binding.stub.name} for binding in bindings]
        return [*stops, *forcing_rules(bindings, choice)]

    def play(self, scene: Scene) -> Iterator[Event]:
        given = self._give_results(scene)
        outgoing: list[Outgoing] = [*given.quoted, *scene.says]
        nudged = ""
        if given.return_id and not outgoing and not scene.features.continues_without_message:
            outgoing, nudged = [Say("system", GO_ON)], given.return_id
        context = Context(scene, nudged)
        events = self._sent(scene, context, outgoing)
        yield from self._gated_calls(scene, context, events) if self._gated else _ungated_calls(scene, events)
        context.drop_nudge()

    def _give_results(self, scene: Scene) -> Given:
        """The client's result in the place of the provisional return; quoted in a message where that can't be done."""
        if not scene.news.results:
            return Given()
        message_id = scene.last_message_id
        result = results_for(scene, message_id).get(0)
        if result is None:
            refuse_stale(scene)
            return Given()
        if scene.gateway.rewrite_return(scene.agent.id, message_id, result.text, not result.is_error):
            return Given(return_id=message_id)
        return Given(quoted=(quoted(result),))

    def _sent(self, scene: Scene, context: Context, outgoing: Sequence[Outgoing]) -> Iterator[Event]:
        """An agent held by a stub (a bridge was killed before it could deny) is freed first."""
        try:
            return begun(scene.gateway.send(scene.agent.id, outgoing, by_token=scene.by_token))
        except LettaConflict as fault:
            request = pending_request(scene) if waits_for_approval(fault) else None
            if request is None or not is_for_clients(scene, request):
                raise
            context.close(request.id)
            return begun(scene.gateway.send(scene.agent.id, outgoing, by_token=scene.by_token))

    def _gated_calls(self, scene: Scene, context: Context, events: Iterator[Event]) -> Iterator[Event]:
        held: AgentCall | None = None
        for event in events:
            if isinstance(event, AgentCall) and event.held and event.name in scene.bound:
                held = event
            elif isinstance(event, Stopped) and held is not None:
                return_id = context.close(held.message_id)
                yield for_client(scene.bound[held.name], held, return_id)
                yield event
            else:
                yield event


def _ungated_calls(scene: Scene, events: Iterator[Event]) -> Iterator[Event]:
    called: dict[str, AgentCall] = {}
    for event in events:
        if isinstance(event, AgentCall) and event.name in scene.bound:
            called[event.call_id] = event
        elif isinstance(event, AgentReturn) and event.call_id in called:
            call = called.pop(event.call_id)
            yield for_client(scene.bound[call.name], call, event.message_id)
        else:
            yield event
