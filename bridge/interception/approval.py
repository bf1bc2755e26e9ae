"""The interception method `approval`, for agents of the type letta_v1_agent on Letta 0.14 and later.

The stub needs an approval. The client's result is sent to Letta as the answer to the approval request, and the model
sees the result as the return of the tool. The interception method `native` does the same without stubs: it sends the
tools with each message (Letta 0.16.2 and later).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaError
from bridge.interception.context_editor import ContextEditor
from bridge.interception.given_results import find_row_of_results, results_for_message
from bridge.interception.held_calls import find_abandoned_request, move_held_calls_last
from bridge.interception.method import NO_RESULT, Interception, PreparedTurn, gating_rules
from bridge.interception.parallel_calls import switch_parallel_calls
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.gateway import CallResult, Outgoing, Results, StoredMessage
from bridge.turn import AgentCall, AgentEvent, Binding, JsonObject, ToolChoice, ToolResult

# What the agent's further calls return if the client takes one call at a time.
ONE_AT_A_TIME = "Not run: the client takes one call at a time. Make this call again if it is still needed."


class Approval(Interception):
    """Catches calls by stubs that need an approval, and answers the approval request with the client's results."""

    name = "approval"

    def tool_rules(self, bindings: Sequence[Binding], choice: ToolChoice) -> list[JsonObject]:
        return gating_rules(bindings, choice)

    def run(self, turn: PreparedTurn) -> Iterator[AgentEvent]:
        return run_with_results(turn)


def run_with_results(turn: PreparedTurn, client_tools: Sequence[JsonObject] = ()) -> Iterator[AgentEvent]:
    """Gives Letta the client's results for the held calls, sends the turn's messages, and yields the events of the run.

    If the turn has nothing new for the agent, yields the reply that the client missed; without such a reply, sends a
    message that makes the agent go on. `client_tools` are the schemas of tools that Letta offers the model in this run
    only. Also switches the agent's setting for parallel calls as the client needs the setting.
    """
    switch_parallel_calls(turn)
    stored, editor = StoredMessages(turn), ContextEditor(turn)
    answers, known_row = _results_for_held_calls(turn, stored)
    outgoing = _outgoing_with_results(turn, answers, turn.messages)
    if not outgoing:
        missed = stored.missed_answer(known_row)
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


def _results_for_held_calls(turn: PreparedTurn, stored: StoredMessages) -> tuple[list[Results], int]:
    """Returns the results to send for the calls that hold the agent, and a number of a row of stored messages.

    The row number is 0 if there are results to send. If no held call gets a result, the list is empty, and the number
    is that of the row in which the agent got the client's results before, as `find_row_of_results` returns it.
    """
    if not turn.new_input.results:
        return [], 0
    request = stored.held_request()
    given = results_for_message(turn, request.id) if request is not None else {}
    if request is not None and given:
        return [_complete_results(turn, request, given)], 0
    return [], find_row_of_results(turn, stored)


def _complete_results(turn: PreparedTurn, request: StoredMessage, given: dict[int, ToolResult]) -> Results:
    """Returns a result for every call of the approval request: the client's result, or a failure with a fixed text.

    `given` has the client's results by call index. Letta accepts only results for all calls of a request together. The
    text of a failure is ONE_AT_A_TIME if the client takes one call at a time and gave a result, otherwise NO_RESULT.
    """
    missing = NO_RESULT if turn.parallel or not given else ONE_AT_A_TIME
    results = []
    for call in request.calls:
        result = given.get(call.index)
        if result is None:
            results.append(CallResult(call.call_id, missing, ok=False))
        else:
            results.append(CallResult(call.call_id, result.text, ok=not result.is_error))
    return Results(tuple(results))


def _outgoing_with_results(
    turn: PreparedTurn, answers: Sequence[Results], messages: Sequence[Outgoing]
) -> list[Outgoing]:
    """Returns what to send to Letta in one request: `answers`, the results for held calls, then the messages.

    Some Letta versions refuse or lose a message that is sent together with results. There, if there are messages, this
    function itself sends the results to Letta, and returns only the messages.
    """
    if messages and not turn.features.takes_messages_beside_results:
        for answer in answers:
            turn.gateway.give_results(turn.agent.id, answer)
        return [*messages]
    return [*answers, *messages]


def _calls_for_client(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    """Yields the events of a run, with held calls in the client's form.

    Of several held calls in one message, only the first is yielded if the client takes one call at a time.
    """
    for event in move_held_calls_last(turn, events):
        if not (isinstance(event, AgentCall) and event.held):
            yield event
        elif event.index == 0 or turn.parallel:
            yield turn.call_for_client(event, event.message_id)
