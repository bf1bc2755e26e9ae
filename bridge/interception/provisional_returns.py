"""Calls return a provisional text at once, so the agent never waits for the client: what rewrite and message share.

Gated (0.11.7 to 0.16.6): the stub needs an approval. As soon as the agent calls it, the call is denied, which asks no
model and runs nothing, and what the denial adds is removed from the context. The agent takes its next message whatever
happens to the client or the bridge. Compared with a denial when the result comes, this saves a call to Letta in the
turn that the user waits for, and leaves nothing to recover from.

Ungated (up to 0.11.6, and `letta_v1_agent` on 0.13.0): the stub runs on the server and returns its fixed text, and an
exit_loop rule ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import GivenResults, refuse_stale_results
from bridge.interception.held_calls import run_agent
from bridge.interception.leftovers import remove_leftovers
from bridge.interception.method import PreparedTurn, forcing_rules, gating_rules
from bridge.interception.stored_messages import StoredMessages
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Binding, JsonObject, Stopped, ToolChoice, ToolResult

# Letta describes every exit rule to the model, and up to 0.11 it fails beyond 5,000 characters of that, some 50 tools.
# So the template for this description renders to nothing. Later versions ignore it and have no such limit.
NO_WORDS = "{# #}"

# Gives the agent one result. Returns None if no call waits for it.
Give = Callable[[PreparedTurn, StoredMessages, ToolResult], GivenResults | None]


@dataclass(frozen=True, slots=True)
class ProvisionalReturns:
    """`text` is what a denied call returns until the client's result comes."""

    text: str
    gated: bool
    rule_prompts: bool

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        if self.gated:
            return gating_rules(bindings, choice)
        exit_rule = {"type": "exit_loop", **({"prompt_template": NO_WORDS} if self.rule_prompts else {})}
        exits = [{**exit_rule, "tool_name": binding.stub.name} for binding in bindings]
        return [*exits, *forcing_rules(bindings, choice)]

    def run(self, turn: PreparedTurn, give: Give) -> Iterator[AgentEvent]:
        """Gives the results, sends the messages, and yields what happens, with calls under the ids of their returns.

        If nothing is new, the client repeats a request, and gets what the agent did next.
        """
        turn = remove_leftovers(turn)
        stored, editor = StoredMessages(turn), ContextEditor(turn)
        given = _give_results(turn, stored, give)
        outgoing = given.outgoing(turn)
        if not outgoing and not given.is_new:
            missed = self._deny_missed_call(turn, stored, editor) or stored.missed_answer(
                given.row, called_by_return=True
            )
            if missed:
                yield from missed
                return
        if not outgoing and not turn.features.continues_without_message:
            outgoing = [editor.go_on_message()]
        yield from self._calls_for_client(turn, editor, run_agent(turn, stored, editor, outgoing))
        editor.remove_temporary()

    def _deny_missed_call(self, turn: PreparedTurn, stored: StoredMessages, editor: ContextEditor) -> list[AgentEvent]:
        """The call at which an earlier attempt was broken off before the denial, so that it has no return."""
        request = stored.held_request() if self.gated else None
        if request is None or any(call.name not in turn.bindings_by_name for call in request.calls):
            return []
        return [*self._calls_for_client(turn, editor, iter(request.calls)), Stopped("end_turn")]

    def _calls_for_client(
        self, turn: PreparedTurn, editor: ContextEditor, events: Iterator[AgentEvent]
    ) -> Iterator[AgentEvent]:
        called: dict[str, AgentCall] = {}
        for event in events:
            if self.gated and isinstance(event, AgentCall) and event.held:
                yield turn.call_for_client(event, editor.deny_call(event.message_id, self.text))
            elif not self.gated and isinstance(event, AgentCall) and event.name in turn.bindings_by_name:
                called[event.call_id] = event
            elif isinstance(event, AgentReturn) and event.call_id in called:
                yield turn.call_for_client(called.pop(event.call_id), event.message_id)
            else:
                yield event


def _give_results(turn: PreparedTurn, stored: StoredMessages, give: Give) -> GivenResults:
    results = () if turn.delivered else turn.new_input.results
    given = [one for result in results if (one := give(turn, stored, result)) is not None]
    if results and not given:
        refuse_stale_results(turn)
    quotes = tuple(quote for one in given for quote in one.quotes)
    return GivenResults(any(one.is_new for one in given), quotes, max((one.row for one in given), default=0))
