"""Takes new stubs from an agent whose turn was refused."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.interception.stored_messages import LOOK_BACK, is_nudge
from bridge.letta.gateway import AgentChange, Gateway
from bridge.sync.plan import plan_detaching
from bridge.turn import Binding


def detach_stubs(gateway: Gateway, agent_id: str, bindings: Sequence[Binding]) -> None:
    """Detaches the stubs with their rules. If the turn left a call of one, or a message of the bridge, in the context,
    leaves all stubs: by them the next turn recognises what it has to clean up.
    """
    agent = gateway.agent(agent_id)
    change = plan_detaching(agent, [one.tool_id for one in bindings])
    if change is None:
        return
    names = {one.stub.name for one in bindings}
    last = agent.message_ids[-1] if agent.message_ids else ""
    newest = gateway.newest_messages(agent_id, LOOK_BACK, including=last)
    rows = [row for row in newest if row.id in agent.message_ids]
    if not any(is_nudge(row) or any(call.name in names for call in row.calls) for row in rows):
        gateway.change_agent(agent_id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
