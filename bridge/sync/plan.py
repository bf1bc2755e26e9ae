"""Wanted, attached -> what to change on the agent. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bridge.letta.gateway import Agent, Tool
from bridge.sync.ownership import digest_of, idle_since, is_ours
from bridge.turn import Binding, JsonObject


@dataclass(frozen=True, slots=True)
class ToolsetChange:
    """The whole of the agent's tools and rules after the change: its own first, in their order, then ours."""

    tool_ids: tuple[str, ...]
    rules: tuple[JsonObject, ...]


def plan_toolset(
    agent: Agent,
    bindings: Sequence[Binding],
    rules: Sequence[JsonObject],
    known_names: Collection[str] = (),
) -> ToolsetChange | None:
    """What makes the agent's toolset its own tools plus `bindings` with `rules`; None when it is so already.

    `known_names` are names of stubs of ours that may be attached no more: their rules leave with them.
    """
    own = [tool for tool in agent.tools if not is_ours(tool)]
    attached = {tool.id for tool in agent.tools if is_ours(tool)}
    kept = _own_rules(agent, {tool.name for tool in own}, {binding.stub.name for binding in bindings} | {*known_names})
    same_tools = attached == {binding.tool_id for binding in bindings}
    same_rules = _counted(agent.rules) == _counted([*kept, *rules])
    if same_tools and same_rules:
        return None
    tool_ids = dict.fromkeys([*(tool.id for tool in own), *(binding.tool_id for binding in bindings)])
    return ToolsetChange(tuple(tool_ids), (*kept, *rules))


def drifted(tool: Tool, binding: Binding) -> bool:
    """Whether the stub on the server is no more what was put there, or is marked for the sweep."""
    stub = binding.stub
    return digest_of(tool) != stub.digest or tool.json_schema != stub.json_schema or idle_since(tool) is not None


def _own_rules(agent: Agent, own_names: Collection[str], our_names: Collection[str]) -> list[JsonObject]:
    ours = {tool.name for tool in agent.tools if is_ours(tool)} | {*our_names}
    return [rule for rule in agent.rules if rule.get("tool_name") in own_names or rule.get("tool_name") not in ours]


def _counted(rules: Sequence[JsonObject]) -> Counter[tuple[object, object]]:
    """Rules by what they say: Letta adds fields of its own to each."""
    return Counter((rule.get("type"), rule.get("tool_name")) for rule in rules)
