"""Runs agents whose calls may wait for an approval. Such an agent takes no message as long as it waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaError
from bridge.interception.close_held import names_of_own_tools, own_tool_error
from bridge.interception.context_editor import ContextEditor
from bridge.interception.method import PreparedTurn
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.failures import WAITS_FOR_APPROVAL
from bridge.letta.gateway import Outgoing, StoredMessage
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Stopped


def run_agent(
    turn: PreparedTurn, stored: StoredMessages, editor: ContextEditor, outgoing: Sequence[Outgoing]
) -> Iterator[AgentEvent]:
    """Sends `outgoing` to the agent and returns the events of the run, held calls last. If Letta refuses because of a
    call that the client abandoned, removes that call from the context and sends again.
    """
    try:
        return move_held_calls_last(turn, turn.start_run(outgoing))
    except LettaError as failure:
        editor.remove_message(find_abandoned_request(turn, stored, failure).id)
        return move_held_calls_last(turn, turn.start_run(outgoing))


def find_abandoned_request(turn: PreparedTurn, stored: StoredMessages, failure: LettaError) -> StoredMessage:
    """Returns the approval request because of which Letta refused a message. Raises `failure`, the refusal, again if it
    has another reason, and LettaConflict if a call of the agent's own tool waits.
    """
    if failure.code != WAITS_FOR_APPROVAL and not turn.features.hides_conflicts:
        raise failure
    request = stored.held_request()
    if request is None:
        raise failure
    own = names_of_own_tools(turn.agent, request)
    if own:
        raise own_tool_error(own[0]) from failure
    return request


def move_held_calls_last(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    """Yields the events of a run, with the calls that hold the agent just before Stopped. A held call is left out if
    any return follows: Letta 0.12, when it streams by token, reports every call as held if any tool needs an approval.
    """
    held: list[AgentCall] = []
    for event in events:
        if isinstance(event, AgentCall) and event.held:
            held.append(event)
            continue
        if isinstance(event, AgentReturn):
            held.clear()
        elif isinstance(event, Stopped):
            own = next((call.name for call in held if call.name not in turn.bindings_by_name), None)
            if own is not None:
                raise own_tool_error(own)
            yield from held
        yield event
