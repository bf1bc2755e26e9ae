"""What the bridge has on the server: read from the server each time, the bridge keeps no list."""

from __future__ import annotations

from dataclasses import dataclass

from bridge.letta.gateway import AgentSummary, Gateway, Tool
from bridge.sync.ownership import is_ours


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A tool of ours and the agents that have it."""

    tool: Tool
    agents: tuple[AgentSummary, ...] = ()


def inventory(gateway: Gateway) -> list[OwnTool]:
    """Every tool of ours, by name; the agents are listed only where there is one."""
    tools = sorted(filter(is_ours, gateway.tools()), key=lambda tool: tool.name)
    attachments = gateway.attachments() if tools else {}
    return [OwnTool(tool, tuple(attachments.get(tool.id, ()))) for tool in tools]
