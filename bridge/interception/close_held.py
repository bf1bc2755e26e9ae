"""The call that holds an agent, seen and closed from outside of any turn."""

from __future__ import annotations

from bridge.errors import LettaConflict
from bridge.interception.held import waits_for_its_own
from bridge.interception.method import NO_RESULT
from bridge.interception.stored_messages import LOOK_BACK, REQUEST
from bridge.letta.capabilities import agent_loop
from bridge.letta.gateway import Agent, AgentChange, CallResult, Gateway, Results, StoredMessage
from bridge.sync.ownership import is_ours


def held_request(gateway: Gateway, agent: Agent) -> StoredMessage | None:
    """What the agent waits at: the end of its context tells."""
    if not agent.message_ids:
        return None
    last = agent.message_ids[-1]
    rows = gateway.newest_messages(agent.id, LOOK_BACK, including=last)
    return next((row for row in rows if row.kind == REQUEST and row.id == last), None)


def own_calls(agent: Agent, request: StoredMessage) -> list[str]:
    """Calls of the agent's own tools, about which only its owner decides."""
    own = {tool.name for tool in agent.tools if not is_ours(tool)}
    return [call.name for call in request.calls if call.name in own]


def close_held(gateway: Gateway, agent: Agent) -> list[str]:
    """Free the agent from the client's calls; their names."""
    request = held_request(gateway, agent)
    if request is None:
        raise LettaConflict("The agent does not wait for the result of any call.", code="no_pending_call")
    own = own_calls(agent, request)
    if own:
        raise waits_for_its_own(own[0])
    close_request(gateway, agent, request)
    return [call.name for call in request.calls]


def close_request(gateway: Gateway, agent: Agent, request: StoredMessage) -> None:
    """Free the agent from the calls that hold it.

    The newest loop is told that there is no result, and asks no model, from 0.14 on. The others have no such answer
    without words of its own, so there the call is taken out of the context, as a turn does it.
    """
    features = gateway.features()
    if agent_loop(features.version, agent.type) == "v3" and features.tool_returns:
        results = (CallResult(call.call_id, NO_RESULT, ok=False) for call in request.calls)
        gateway.give(agent.id, Results(tuple(results)))
    else:
        kept = [message_id for message_id in agent.message_ids if message_id != request.id]
        gateway.change_agent(agent.id, AgentChange(message_ids=kept))
