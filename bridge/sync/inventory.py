"""Lists the tools of the bridge on the Letta server. The list is fetched each time, and not kept in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.sync.ownership import is_ours
from bridge.sync.plan import names_in_rules_without_tool


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of the bridge. `ruled` are agents with only a rule for it, because somebody detached the tool by hand. The
    tool proves that the rule is the bridge's, so it stays until the agent's next turn has removed the rule.
    """

    tool: Tool
    agents: tuple[Agent, ...] = ()
    ruled: tuple[Agent, ...] = ()

    @property
    def is_used(self) -> bool:
        return bool(self.agents or self.ruled)


def list_own_tools(gateway: Gateway) -> list[OwnTool]:
    """Returns all tools of the bridge, sorted by name. Fetches the agents only if there is such a tool."""
    tools = sorted(filter(is_ours, gateway.tools()), key=lambda tool: tool.name)
    return own_tools_with_agents(tools, gateway.whole_agents()) if tools else []


def own_tools_with_agents(tools: Sequence[Tool], agents: Sequence[Agent]) -> list[OwnTool]:
    """Returns the tools, each with those of the agents that have the tool or only a rule for the tool."""
    holders: defaultdict[str, list[Agent]] = defaultdict(list)
    ruled: defaultdict[str, list[Agent]] = defaultdict(list)
    for agent in agents:
        for tool in agent.tools:
            holders[tool.id].append(agent)
        for name in names_in_rules_without_tool(agent):
            ruled[name].append(agent)
    return [OwnTool(tool, tuple(holders[tool.id]), tuple(ruled[tool.name])) for tool in tools]
