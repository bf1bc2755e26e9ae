"""Removes everything that the bridge ever put on a Letta server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from bridge.errors import LettaNotFound
from bridge.interception.close_held import close_request, find_held_request, names_of_own_tools
from bridge.interception.parallel_calls import is_switched_on_by_bridge
from bridge.interception.relay import remove_result_variables
from bridge.letta.gateway import HELPER_PREFIX, Agent, Block, Gateway, Tool
from bridge.offering import Offering
from bridge.operation.actions import CHATS_STAY, remove_all_from_agent
from bridge.operation.chat_removal import remove_chat_lists
from bridge.sync import instructions
from bridge.sync.inventory import list_own_tools
from bridge.sync.ownership import is_ours


@dataclass(frozen=True, slots=True)
class Remains:
    """What the bridge put on the Letta server and is still there: stubs, users' agents with tools, rules, a block, a
    setting or lists of chats of the bridge, the bridge's own agents, and the bridge's blocks that no agent has.
    """

    tools: Sequence[Tool]
    agents: Sequence[Agent]
    helpers: Sequence[Agent]
    blocks: Sequence[Block]

    @property
    def steps(self) -> int:
        return len(self.tools) + len(self.agents) + len(self.helpers) + len(self.blocks)

    @property
    def agents_with_chats(self) -> list[Agent]:
        return [agent for agent in self.agents if agent.has_chats]


def find_remains(gateway: Gateway) -> Remains:
    """Searches the Letta server for everything that the bridge put on it. Changes nothing."""
    owned = list_own_tools(gateway)
    agents = gateway.whole_agents(blocks=True)
    ruled = {agent.id for own in owned for agent in own.ruled}
    touched = [
        agent
        for agent in agents
        if any(map(is_ours, agent.tools))
        or any(map(instructions.is_ours, agent.blocks))
        or agent.id in ruled
        or is_switched_on_by_bridge(agent)
        or agent.has_chats
    ]
    helpers = [agent for agent in agents if agent.name.startswith(HELPER_PREFIX)]
    attached = {block.id for agent in agents for block in agent.blocks}
    loose = [block for block in gateway.blocks() if instructions.is_ours(block) and block.id not in attached]
    return Remains([own.tool for own in owned], [agent for agent in touched if agent not in helpers], helpers, loose)


def remove_all_from_server(
    gateway: Gateway, found: Remains, offering: Offering, hold: Callable[[str], AbstractContextManager[object]]
) -> Iterator[str]:
    """Removes what `find_remains` found, one step for each sentence that the caller reads. `hold` locks an agent."""
    for agent in found.agents:
        with hold(agent.id):
            yield _clean_agent(gateway, agent, offering)
    for helper in found.helpers:
        gateway.delete_agent(helper.id)
        yield f"deleted the agent {helper.name}"
    for tool in found.tools:
        gateway.delete_tool(tool.id)
        yield f"deleted the tool {tool.name}"
    for block in found.blocks:
        gateway.delete_block(block.id)
        yield f"deleted a memory block {block.label}"


def _clean_agent(gateway: Gateway, listed: Agent, offering: Offering) -> str:
    """Removes all of the bridge from the agent, which may have changed or gone since it was `listed`."""
    try:
        agent = gateway.agent(listed.id)
    except LettaNotFound:
        return f"the agent {listed.name} is gone"
    agent = _close_pending_call(gateway, agent)
    if agent.has_chats:
        agent = _close_pending_call(gateway, remove_chat_lists(gateway, agent))
    whole = remove_all_from_agent(gateway, agent, offering.detached_stub_names(agent))
    remove_result_variables(gateway, agent)
    done = f"detached the bridge's tools from {agent.name}"
    return done if whole else f"{done}. {CHATS_STAY}"


def _close_pending_call(gateway: Gateway, agent: Agent) -> Agent:
    """Closes the held call of a client's tool in the agent's context: without the bridge no client could send the
    result.
    """
    request = find_held_request(gateway, agent)
    if request is None or names_of_own_tools(agent, request):
        return agent
    close_request(gateway, agent, request)
    return gateway.agent(agent.id)
