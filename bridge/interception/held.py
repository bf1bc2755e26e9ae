"""An agent that waits for an approval takes no message: whose call it is that holds it, and how it is freed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.errors import LettaConflict, LettaError
from bridge.interception.context_editor import ContextEditor
from bridge.interception.method import PreparedTurn, begun
from bridge.interception.stored_messages import StoredMessages
from bridge.letta.failures import WAITS_FOR_APPROVAL
from bridge.letta.gateway import Outgoing, StoredMessage
from bridge.sync.ownership import is_ours
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Stopped


def sent(
    turn: PreparedTurn, past: StoredMessages, context: ContextEditor, outgoing: Sequence[Outgoing]
) -> Iterator[AgentEvent]:
    """The events of a run, begun. A held call that no client has, or that it gave up, is taken out of the way first."""
    try:
        return begun(turn.gateway.send(turn.agent.id, outgoing, by_token=turn.by_token))
    except LettaError as fault:
        context.drop(given_up(turn, past, fault).id)
        return begun(turn.gateway.send(turn.agent.id, outgoing, by_token=turn.by_token))


def given_up(turn: PreparedTurn, past: StoredMessages, fault: LettaError) -> StoredMessage:
    """The client's calls for whose sake a message was refused; raises the refusal when there are none."""
    if fault.code != WAITS_FOR_APPROVAL and not turn.features.hides_conflicts:
        raise fault
    request = past.held()
    if request is None:
        raise fault
    own = {tool.name for tool in turn.agent.tools if not is_ours(tool)}
    foreign = next((call.name for call in request.calls if call.name in own), None)
    if foreign is not None:
        raise waits_for_its_own(foreign) from fault
    return request


def ended_at(turn: PreparedTurn, events: Iterator[AgentEvent]) -> Iterator[AgentEvent]:
    """The events of a run, the calls at which it ended last; it fails where a gated tool of the agent's own is one.

    By token, 0.12 announces every call of an agent with gated tools as held. One that returns was not.
    """
    held: list[AgentCall] = []
    for event in events:
        if isinstance(event, AgentCall) and event.held:
            held.append(event)
            continue
        if isinstance(event, AgentReturn):
            held.clear()
        elif isinstance(event, Stopped):
            own = next((call.name for call in held if call.name not in turn.bound), None)
            if own is not None:
                raise waits_for_its_own(own)
            yield from held
        yield event


def waits_for_its_own(tool: str) -> LettaConflict:
    """Nobody but the agent's owner decides about the agent's own tools."""
    return LettaConflict(
        f"The agent waits for somebody to approve or deny its own tool {tool!r:.80}, which is not one of the client's."
        " Decide that in Letta, then send again.",
        code=WAITS_FOR_APPROVAL,
    )
