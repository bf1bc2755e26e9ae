"""Lists what the bridge has on the server. It is read from the server each time; the bridge keeps no list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.sync.ownership import is_ours
from bridge.sync.plan import names_in_rules_without_tool


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of ours and the agents that have it.

    `ruled` are agents that have only a rule for it, because somebody detached the tool by hand. The tool shows that
    the rule is ours, so it stays until the agent's next turn has removed the rule.
    """

    tool: Tool
    agents: tuple[Agent, ...] = ()
    ruled: tuple[Agent, ...] = ()

    @property
    def is_used(self) -> bool:
        return bool(self.agents or self.ruled)


def list_own_tools(gateway: Gateway) -> list[OwnTool]:
    """Returns all tools of ours, sorted by name. The agents are only listed if there is such a tool."""
    tools = sorted(filter(is_ours, gateway.tools()), key=lambda tool: tool.name)
    return own_tools_with_agents(tools, gateway.whole_agents()) if tools else []


def own_tools_with_agents(tools: Sequence[Tool], agents: Sequence[Agent]) -> list[OwnTool]:
    having: defaultdict[str, list[Agent]] = defaultdict(list)
    ruled: defaultdict[str, list[Agent]] = defaultdict(list)
    for agent in agents:
        for tool in agent.tools:
            having[tool.id].append(agent)
        for name in names_in_rules_without_tool(agent):
            ruled[name].append(agent)
    return [OwnTool(tool, tuple(having[tool.id]), tuple(ruled[tool.name])) for tool in tools]
