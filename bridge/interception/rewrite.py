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

from bridge.dialects.openai.call_ids import message_of
from bridge.interception.context_editor import ContextEditor
from bridge.interception.held import ended_at, sent
from bridge.interception.leftovers import tidied
from bridge.interception.method import NO_RESULT, PreparedTurn, for_client, forcing_rules, provisional, refuse_stale
from bridge.interception.quoting import quoted
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import Outgoing, Say
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    Binding,
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

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        turn = self._tidied(turn)
        past, context = StoredMessages(turn), ContextEditor(turn)
        given = Given() if turn.arrived else self._give_results(turn, past, context)
        outgoing: list[Outgoing] = [*turn.marked(list(given.quoted), "result-"), *turn.says]
        if not outgoing and not given.anew:
            missed = self._not_closed(turn, past, context) or past.answer(
                max(given.place, past.told()), called_by_return=self.called_by_return
            )
            if missed:
                yield from missed
                return
        if not outgoing and not turn.features.continues_without_message:
            outgoing = [context.nudge()]
        events = ended_at(turn, sent(turn, past, context, outgoing))
        yield from self._gated_calls(turn, context, events) if self._gated else _ungated_calls(turn, events)
        context.drop_nudge()

    def _not_closed(self, turn: PreparedTurn, past: StoredMessages, context: ContextEditor) -> list[AgentEvent]:
        """The call at which the turn was broken off before it was closed, so that it has no return to go by."""
        held = past.held() if self._gated and self.called_by_return else None
        if held is None or any(call.name not in turn.bound for call in held.calls):
            return []
        return [*self._gated_calls(turn, context, iter(held.calls)), Stopped("end_turn")]

    def _tidied(self, turn: PreparedTurn) -> PreparedTurn:
        return tidied(turn)

    def _give_results(self, turn: PreparedTurn, past: StoredMessages, context: ContextEditor) -> Given:
        """Results in the place of provisional returns, wherever in the context these stand by now."""
        given = [self._give(turn, past, result) for result in turn.news.results]
        found = [one for one in given if one is not None]
        if given and not found:
            refuse_stale(turn)
        quotes = tuple(say for one in found for say in one.quoted)
        return Given(any(one.anew for one in found), quotes, max((one.place for one in found), default=0))

    def _give(self, turn: PreparedTurn, past: StoredMessages, result: ToolResult) -> Given | None:
        """What became of one result, None if no call waits for it. The usual one is for the end of the context."""
        message_id, _ = message_of(result.call_id) or ("", 0)
        if message_id != turn.last_message_id:
            place, text = past.return_of(result) or (0, None)
            if text is None or provisional(text) is None:
                return Given(place=place) if text == result.text else None
        return self._deliver(turn, message_id, result)

    def _deliver(self, turn: PreparedTurn, message_id: str, result: ToolResult) -> Given:
        if turn.gateway.rewrite_return(turn.agent.id, message_id, result.text, not result.is_error):
            return Given(anew=True)
        return Given(anew=True, quoted=(quoted(result),))

    def _gated_calls(
        self, turn: PreparedTurn, context: ContextEditor, events: Iterator[AgentEvent]
    ) -> Iterator[AgentEvent]:
        for event in events:
            if isinstance(event, AgentCall) and event.held:
                return_id = context.close(event.message_id, self.until_then)
                yield for_client(turn.bound[event.name], event, return_id)
            else:
                yield event


def _ungated_calls(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    called: dict[str, AgentCall] = {}
    for event in events:
        if isinstance(event, AgentCall) and event.name in turn.bound:
            called[event.call_id] = event
        elif isinstance(event, AgentReturn) and event.call_id in called:
            call = called.pop(event.call_id)
            yield for_client(turn.bound[call.name], call, event.message_id)
        else:
            yield event
