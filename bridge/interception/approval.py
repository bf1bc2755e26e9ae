"""The interception method `approval`, for agents of the type letta_v1_agent on Letta 0.14 and later.

The stub needs an approval. The client's result is sent to Letta as the answer to the approval request, and the model
sees the result as the return of the tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.catalogue.access import Answer
from bridge.errors import LettaError
from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import (
    GivenResults,
    add_other_results,
    answer_without_run,
    results_for_message,
)
from bridge.interception.held_calls import find_abandoned_request, move_held_calls_last
from bridge.interception.leftovers import remove_nudges
from bridge.interception.method import NO_RESULT, Interception, PreparedTurn, gating_rules
from bridge.interception.parallel_calls import switch_parallel_calls
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import CallResult, Outgoing, Results, StoredMessage
from bridge.turn import AgentCall, AgentEvent, Binding, JsonObject, ToolChoice, ToolResult

# What the agent's further calls return if the client takes one call at a time.
ONE_AT_A_TIME = "Not run: the client takes one call at a time. Make this call again if it is still needed."


class Approval(Interception):
    name = "approval"

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return gating_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return run_with_results(turn)


def run_with_results(turn: PreparedTurn, client_tools: Sequence[JsonObject] = ()) -> Iterator[AgentEvent]:
    """Sends the client's results and the turn's messages, and yields the events of the run. If there is nothing to
    send, yields the reply that the client missed, or makes the agent go on.
    """
    turn = remove_nudges(turn)
    stored, editor = StoredMessages(turn), ContextEditor(turn)
    answers, given = _give_results(turn, stored)
    switch_parallel_calls(turn)
    outgoing = _outgoing_with_results(turn, answers, given.outgoing(turn))
    if not outgoing:
        missed = answer_without_run(turn, stored, given)
        if missed:
            yield from missed
            return
        outgoing = [editor.go_on_message()]
    try:
        events = turn.start_run(outgoing, client_tools)
    except LettaError as failure:
        # A call that the client abandoned still holds the agent: close it in the request that sends the messages.
        request = find_abandoned_request(turn, stored, failure)
        events = turn.start_run(
            _outgoing_with_results(turn, [_complete_results(turn, request, {})], outgoing), client_tools
        )
    yield from _calls_for_client(turn, events)
    editor.remove_temporary()


def _give_results(turn: PreparedTurn, stored: StoredMessages) -> tuple[list[Results], GivenResults]:
    """Returns the results to send for the held calls, and what becomes of all results of the turn together."""
    results = turn.new_input.results
    request = stored.held_request() if results else None
    given = results_for_message(turn, request.id) if request is not None else {}
    others = [one for one in results if one not in given.values()]
    answers = [_complete_results(turn, request, given)] if request is not None and given else []
    return answers, add_other_results(turn, stored, others, GivenResults(is_new=bool(given)))


def _complete_results(turn: PreparedTurn, request: StoredMessage, given: dict[int, ToolResult]) -> Results:
    """Returns the request's results, with a text for a call without one: Letta refuses results for only some calls."""
    text, ok = (NO_RESULT, True) if turn.parallel or not given else (ONE_AT_A_TIME, False)
    results = []
    for call in request.calls:
        result = given.get(call.index)
        answer = None if result else _answer_beside_results(turn, request, call)
        if answer is not None:
            results.append(CallResult(call.call_id, answer.text, answer.ok))
        elif result is None:
            results.append(CallResult(call.call_id, text, ok))
        else:
            results.append(CallResult(call.call_id, result.text, ok=not result.is_error))
    return Results(tuple(results))


def _answer_beside_results(turn: PreparedTurn, request: StoredMessage, call: AgentCall) -> Answer | None:
    """Returns the bridge's own answer to a call by which the agent looks for tools, None for other calls. The agent may
    make such a call beside those of the client's tools, and needs the results of all calls at once.
    """
    if turn.access is None or call.name not in turn.bindings_by_name:
        return None
    answer = turn.access.answer(turn.call_for_client(call, request.id))
    return answer if isinstance(answer, Answer) else None


def _outgoing_with_results(
    turn: PreparedTurn, answers: Sequence[Results], messages: Sequence[Outgoing]
) -> list[Outgoing]:
    """Returns the results for held calls and then the messages, to be sent in one request. For Letta versions that
    refuse or lose a message beside results, sends the results itself and returns only the messages.
    """
    if messages and not turn.features.takes_messages_beside_results:
        for answer in answers:
            turn.gateway.give_results(turn.agent.id, answer)
        return [*messages]
    return [*answers, *messages]


def _calls_for_client(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    for event in move_held_calls_last(turn, events):
        if not (isinstance(event, AgentCall) and event.held):
            yield event
        elif event.index == 0 or turn.parallel:
            yield turn.call_for_client(event, event.message_id)
