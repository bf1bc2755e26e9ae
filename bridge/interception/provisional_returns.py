"""Gives calls a provisional return at once, so that the agent never waits for the client. For `rewrite` and `message`.

Gated (Letta 0.11.7 to 0.16.6): the stub needs an approval. As soon as the agent calls the stub, the bridge denies the
call, which asks no model and runs no code. Then the bridge removes what the denial adds to the context. The agent takes
its next message whatever happens to the client or the bridge. A denial when the result comes would cost one more
request to Letta in the turn that the user waits for, and a broken-off turn would leave a held call behind.

Ungated (up to Letta 0.11.6, and `letta_v1_agent` on Letta 0.13.0): the stub runs on the server and returns its fixed
text, and an exit_loop rule ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import GivenResults, add_other_results, answer_without_run
from bridge.interception.held_calls import run_agent
from bridge.interception.leftovers import remove_leftovers
from bridge.interception.method import PreparedTurn, find_provisional_text, forcing_rules, gating_rules
from bridge.interception.stored_messages import StoredMessages
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Binding, JsonObject, Stopped, ToolChoice, ToolResult

# A template that renders to nothing, for the description of an exit rule. Letta describes every exit rule to the model,
# and up to Letta 0.11 it fails if these descriptions have more than 5,000 characters, some 50 tools. Later versions of
# Letta ignore the template and have no such limit.
NO_WORDS = "{# #}"

# A function that makes a result the return of its call, which is in the stored message with this id. It returns whether
# it did; if not, the result is quoted in a message.
Give = Callable[[PreparedTurn, str, ToolResult], bool]


@dataclass(frozen=True, slots=True)
class ProvisionalReturns:
    """Runs turns in which calls return `text` at once. `rule_prompts`: on this server, tool rules can have prompts."""

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
        """Gives results by `give`, sends messages, and yields the run's events, or the reply that the client missed."""
        turn = remove_leftovers(turn)
        stored, editor = StoredMessages(turn), ContextEditor(turn)
        given = _give_results(turn, stored, give)
        outgoing = given.outgoing(turn)
        if not outgoing and not given.is_new:
            missed = self._deny_missed_call(turn, stored, editor) or answer_without_run(
                turn, stored, given, called_by_return=True
            )
            if missed:
                yield from missed
                return
        if not outgoing and not turn.features.continues_without_message:
            outgoing = [editor.go_on_message()]
        yield from self._calls_for_client(turn, editor, run_agent(turn, stored, editor, outgoing))
        editor.remove_temporary()

    def _deny_missed_call(self, turn: PreparedTurn, stored: StoredMessages, editor: ContextEditor) -> list[AgentEvent]:
        """Denies a stub's call that an earlier attempt left held. Returns the call and Stopped, [] if there is none."""
        request = stored.held_request() if self.gated else None
        if request is None or any(call.name not in turn.bindings_by_name for call in request.calls):
            return []
        return [*self._calls_for_client(turn, editor, iter(request.calls)), Stopped("end_turn")]

    def _calls_for_client(
        self, turn: PreparedTurn, editor: ContextEditor, events: Iterator[AgentEvent]
    ) -> Iterator[AgentEvent]:
        """Yields the events of a run, with calls of stubs as calls for the client. Ungated, a call is yielded when its
        return comes, because the id for the client contains the id of the message with the return.
        """
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
    """Gives the results of waiting calls by `give`, and returns what becomes of all results of the turn together."""
    if turn.delivered:
        return GivenResults()
    results = turn.new_input.results
    waiting = {one.call_id: message_id for one in results if (message_id := _find_waiting_call(turn, stored, one))}
    quoted = [one for one in results if one.call_id in waiting and not give(turn, waiting[one.call_id], one)]
    others = [one for one in results if one.call_id not in waiting]
    return add_other_results(turn, stored, others, GivenResults(bool(waiting), tuple(quoted)))


def _find_waiting_call(turn: PreparedTurn, stored: StoredMessages, result: ToolResult) -> str:
    """Returns the id of the message with the provisional return of the result's call; "" if no call waits for it."""
    message_id, _ = turn.call_ids.message_and_index(result.call_id) or ("", 0)
    if message_id == turn.last_message_id:
        return message_id
    row, text = stored.find_return(result) or (0, "")
    return stored.context_rows[row].id if find_provisional_text(text) and stored.is_last(row) else ""
