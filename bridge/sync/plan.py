"""Plans the change of an agent's tools and tool rules from what the agent has and what is wanted. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bridge.letta.gateway import Agent
from bridge.sync.ownership import is_ours, was_replaced
from bridge.turn import Binding, JsonObject

# The types of rules that the bridge makes. A rule of another type for a stub was made by somebody else.
OUR_RULES = frozenset({"requires_approval", "exit_loop", "run_first"})


@dataclass(frozen=True, slots=True)
class ToolsetChange:
    """All of an agent's tools and rules after a change: the agent's own first, in their order, then the bridge's."""

    tool_ids: tuple[str, ...]
    rules: tuple[JsonObject, ...]


def plan_toolset(
    agent: Agent,
    bindings: Sequence[Binding],
    rules: Sequence[JsonObject],
    detached_names: Collection[str] = (),
) -> ToolsetChange | None:
    """Returns the change to the agent's own tools plus `bindings` and own rules plus `rules`; None if there is nothing
    to do. Removes old rules of the bridge, which Letta keeps when a stub is gone. If somebody put another tool under a
    stub's name, the stub's rule goes, too: because of that rule, the agent would wait at each call of the other tool.
    """
    own = [tool for tool in agent.tools if not is_ours(tool)]
    attached = [tool for tool in agent.tools if is_ours(tool)]
    our_names = {tool.name for tool in attached} | {binding.stub.name for binding in bindings} | {*detached_names}
    replaced = {tool.name for tool in own if was_replaced(tool)}
    kept = _remove_our_rules(agent.rules, (our_names - {tool.name for tool in own}) | replaced)
    same_tools = {tool.id for tool in attached} == {binding.tool_id for binding in bindings}
    if same_tools and _count_rules(agent.rules) == _count_rules([*kept, *rules]):
        return None
    tool_ids = dict.fromkeys([*(tool.id for tool in own), *(binding.tool_id for binding in bindings)])
    return ToolsetChange(tuple(tool_ids), (*kept, *rules))


def plan_detaching(agent: Agent, tool_ids: Collection[str]) -> ToolsetChange | None:
    """Returns the change that takes these stubs and their rules from the agent; None if it has none of the stubs."""
    names = {tool.name for tool in agent.tools if is_ours(tool) and tool.id in tool_ids}
    if not names:
        return None
    kept = tuple(tool.id for tool in agent.tools if tool.name not in names)
    return ToolsetChange(kept, tuple(_remove_our_rules(agent.rules, names)))


def names_in_rules_without_tool(agent: Agent) -> set[str]:
    """Returns the names in an agent's rules of the bridge's types for which the agent has no tool."""
    ruled = {str(rule.get("tool_name")) for rule in agent.rules if rule.get("type") in OUR_RULES}
    return ruled - {tool.name for tool in agent.tools}


def _remove_our_rules(rules: Sequence[JsonObject], our_names: Collection[str]) -> list[JsonObject]:
    return [rule for rule in rules if rule.get("type") not in OUR_RULES or rule.get("tool_name") not in our_names]


def _count_rules(rules: Sequence[JsonObject]) -> Counter[tuple[object, object]]:
    """Counts rules by type and tool only, because Letta adds fields of its own to each rule."""
    return Counter((rule.get("type"), rule.get("tool_name")) for rule in rules)
