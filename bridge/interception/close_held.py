"""Finds and closes calls of client tools that hold an agent: Letta waits for their approval and takes no message."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.errors import LettaConflict
from bridge.interception.method import NO_RESULT
from bridge.interception.stored_messages import LOOK_BACK, LOOK_FAR, REQUEST
from bridge.letta.capabilities import agent_loop
from bridge.letta.failures import WAITS_FOR_APPROVAL
from bridge.letta.gateway import Agent, AgentChange, CallResult, Gateway, Results, StoredMessage
from bridge.sync.ownership import is_ours


def find_held_request(gateway: Gateway, agent: Agent) -> StoredMessage | None:
    """Fetches the approval request that holds the agent, None if there is none. Only the last message can hold it."""
    if not agent.message_ids:
        return None
    further = LOOK_FAR if agent.has_chats else 0
    rows = gateway.newest_messages(agent.id, LOOK_BACK, including=agent.message_ids[-1], further=further)
    return held_request_among(agent, rows)


def held_request_among(agent: Agent, rows: Iterable[StoredMessage]) -> StoredMessage | None:
    """Returns the approval request that holds the agent. `rows` are its newest messages, in any order."""
    last = agent.message_ids[-1] if agent.message_ids else ""
    return next((row for row in rows if row.kind == REQUEST and row.id == last), None)


def names_of_own_tools(agent: Agent, request: StoredMessage) -> list[str]:
    """Returns the called tools that are the agent's own, not stubs: only the agent's owner may decide on these."""
    own = {tool.name for tool in agent.tools if not is_ours(tool)}
    return [call.name for call in request.calls if call.name in own]


def own_tool_error(tool: str) -> LettaConflict:
    return LettaConflict(
        f"The agent waits for somebody to approve or deny its own tool {tool!r:.80}, which is not one of the client's."
        " Decide that in Letta, then send again.",
        code=WAITS_FOR_APPROVAL,
    )


def close_held_calls(gateway: Gateway, agent: Agent) -> list[str]:
    """Closes the client's calls that hold the agent, outside of any turn. Returns the names of the called stubs."""
    request = find_held_request(gateway, agent)
    if request is None:
        raise LettaConflict("The agent does not wait for the result of any call.", code="no_pending_call")
    own = names_of_own_tools(agent, request)
    if own:
        raise own_tool_error(own[0])
    close_request(gateway, agent, request)
    return [call.name for call in request.calls]


def close_request(gateway: Gateway, agent: Agent, request: StoredMessage) -> None:
    """Closes all calls of an approval request without asking a model. From Letta 0.14 on, letta_v1_agent accepts
    results. For others, removes the request from the context: they accept only denials, to which Letta adds words.
    """
    features = gateway.features()
    if agent_loop(features.version, agent.type) == "v3" and features.tool_returns:
        results = (CallResult(call.call_id, NO_RESULT) for call in request.calls)
        gateway.give_results(agent.id, Results(tuple(results)))
    else:
        kept = [message_id for message_id in agent.message_ids if message_id != request.id]
        gateway.change_agent(agent.id, AgentChange(message_ids=kept))
