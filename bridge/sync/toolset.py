"""The agent's toolset becomes the request's toolset: plan, apply, and repair what another writer did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.errors import LettaError, LettaUnavailable
from bridge.letta.gateway import Agent, AgentChange, Gateway
from bridge.sync.concurrently import at_once
from bridge.sync.ownership import is_marked, is_ours, unmarked
from bridge.sync.plan import plan_toolset
from bridge.sync.races import may_be_a_race
from bridge.sync.registry import Registry, unfit
from bridge.turn import Binding, JsonObject, Stub

REPAIRS = 2

RulesFor = Callable[[Sequence[Binding]], Sequence[JsonObject]]


def sync_toolset(
    gateway: Gateway, registry: Registry, agent: Agent, stubs: Sequence[Stub], rules_for: RulesFor
) -> tuple[Agent, list[Binding]]:
    """The agent with exactly its own tools and `stubs`, and the stubs' bindings. An unchanged toolset costs no call.

    A stub that vanished or was changed by somebody else is put back, a tool of the agent's own that vanished
    meanwhile is read anew; at most twice, then it is a LettaUnavailable.
    """
    last = "they are changed by somebody else at the same time"
    for attempt in range(1 + REPAIRS):
        if attempt:
            registry.forget(stubs)
            agent = gateway.agent(agent.id)
        try:
            synced = _attempt(gateway, registry, agent, stubs, rules_for)
        except LettaError as fault:
            if not may_be_a_race(fault):
                raise
            last = fault.message
        else:
            if synced is not None:
                return synced
    registry.forget(stubs)
    raise LettaUnavailable(f"The agent's tools could not be set, {1 + REPAIRS} times in a row ({last}). Try again.")


def _attempt(
    gateway: Gateway, registry: Registry, agent: Agent, stubs: Sequence[Stub], rules_for: RulesFor
) -> tuple[Agent, list[Binding]] | None:
    """The agent and the bindings, or None when the agent has them otherwise than was wanted."""
    bindings, called = registry.place(agent, stubs)
    if called:
        # It took a while, in which somebody may have changed the agent's own tools.
        agent = gateway.agent(agent.id)
    change = plan_toolset(agent, bindings, rules_for(bindings), registry.left_behind(agent))
    if change is not None:
        agent = gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
    if not _has(agent, bindings):
        return None
    marked = [tool for tool in agent.tools if is_ours(tool) and is_marked(tool)]
    at_once(lambda tool: gateway.tag_tool(tool.id, unmarked(tool)), marked)
    return agent, bindings


def _has(agent: Agent, bindings: Sequence[Binding]) -> bool:
    attached = {tool.id: tool for tool in agent.tools}
    ours = {tool.id for tool in agent.tools if is_ours(tool)}
    return ours == {binding.tool_id for binding in bindings} and not any(unfit(attached, b) for b in bindings)
