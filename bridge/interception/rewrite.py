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

from bridge.interception.context import Context
from bridge.interception.held import ended_at, sent
from bridge.interception.ids import message_of
from bridge.interception.leftovers import tidied
from bridge.interception.method import NO_RESULT, Scene, for_client, forcing_rules, provisional, refuse_stale
from bridge.interception.past import Past
from bridge.interception.quoting import quoted
from bridge.letta.gateway import Outgoing, Say
from bridge.turn import (
    AgentCall,
    AgentReturn,
    Binding,
    Event,
    JsonObject,
    Method,
    Stopped,
    StubKind,
    ToolChoice,
    ToolResult,
)

# Letta tells the model of every exit rule, and up to 0.11 fails beyond 5,000 characters of it, some 50 tools: so the
# template that it says this by renders to nothing. Later versions ignore it and have no such limit.
NO_WORDS = "{# #}"


@dataclass(frozen=True, slots=True)
class Given:
    """What became of the client's results: `anew` where the agent has one that it had not before.

    `quoted` are messages in the place of returns that could not be set; `place` is where in the past the agent got the
    result that it had already.
    """

    anew: bool = False
    quoted: tuple[Say, ...] = ()
    place: int = 0


class Rewrite:
    name: Method = "rewrite"
    offers_stubs = True
    stub_kind: StubKind = "placeholder"
    can_force = True
    # What the return of a call says until the client's result comes.
    until_then = NO_RESULT
    called_by_return = True

    def __init__(self, *, gated: bool, rule_prompts: bool = False) -> None:
        self._gated = gated
        self.runs_stubs = not gated
        stop: JsonObject = {"type": "requires_approval" if gated else "exit_loop"}
        self._stop = stop if gated or not rule_prompts else {**stop, "prompt_template": NO_WORDS}

    def rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        stops = [{**self._stop, "tool_name": binding.stub.name} for binding in bindings]
        return [*stops, *forcing_rules(bindings, choice)]

    def play(self, scene: Scene) -> Iterator[Event]:
        scene = self._tidied(scene)
        past, context = Past(scene), Context(scene)
        given = Given() if scene.arrived else self._give_results(scene, past, context)
        outgoing: list[Outgoing] = [*scene.marked(list(given.quoted), "result-"), *scene.says]
        if not outgoing and not given.anew:
            missed = self._not_closed(scene, past, context) or past.answer(
                max(given.place, past.told()), called_by_return=self.called_by_return
            )
            if missed:
                yield from missed
                return
        if not outgoing and not scene.features.continues_without_message:
            outgoing = [context.nudge()]
        events = ended_at(scene, sent(scene, past, context, outgoing))
        yield from self._gated_calls(scene, context, events) if self._gated else _ungated_calls(scene, events)
        context.drop_nudge()

    def _not_closed(self, scene: Scene, past: Past, context: Context) -> list[Event]:
        """The call at which the turn was broken off before it was closed, so that it has no return to go by."""
        held = past.held() if self._gated and self.called_by_return else None
        if held is None or any(call.name not in scene.bound for call in held.calls):
            return []
        return [*self._gated_calls(scene, context, iter(held.calls)), Stopped("end_turn")]

    def _tidied(self, scene: Scene) -> Scene:
        return tidied(scene)

    def _give_results(self, scene: Scene, past: Past, context: Context) -> Given:
        """Results in the place of provisional returns, wherever in the context these stand by now."""
        given = [self._give(scene, past, result) for result in scene.news.results]
        found = [one for one in given if one is not None]
        if given and not found:
            refuse_stale(scene)
        quotes = tuple(say for one in found for say in one.quoted)
        return Given(any(one.anew for one in found), quotes, max((one.place for one in found), default=0))

    def _give(self, scene: Scene, past: Past, result: ToolResult) -> Given | None:
        """What became of one result, None if no call waits for it. The usual one is for the end of the context."""
        message_id, _ = message_of(result.call_id) or ("", 0)
        if message_id != scene.last_message_id:
            place, text = past.return_of(result) or (0, None)
            if text is None or provisional(text) is None:
                return Given(place=place) if text == result.text else None
        return self._deliver(scene, message_id, result)

    def _deliver(self, scene: Scene, message_id: str, result: ToolResult) -> Given:
        if scene.gateway.rewrite_return(scene.agent.id, message_id, result.text, not result.is_error):
            return Given(anew=True)
        return Given(anew=True, quoted=(quoted(result),))

    def _gated_calls(self, scene: Scene, context: Context, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, AgentCall) and event.held:
                return_id = context.close(event.message_id, self.until_then)
                yield for_client(scene.bound[event.name], event, return_id)
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
