"""Makes the stubs of an agent those of a request, and repairs what others change at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.errors import LettaError, LettaUnavailable
from bridge.letta.gateway import Agent, AgentChange, Gateway
from bridge.sync.concurrently import call_concurrently
from bridge.sync.new_stubs import NewStubs
from bridge.sync.ownership import has_sweep_tag, is_ours, tags_without_sweep
from bridge.sync.plan import plan_toolset
from bridge.sync.races import may_be_a_race
from bridge.sync.registry import Registry, is_unusable_stub
from bridge.turn import Binding, JsonObject, Stub

REPAIRS = 2

RulesFor = Callable[[Sequence[Binding]], Sequence[JsonObject]]


def sync_toolset(
    gateway: Gateway, registry: Registry, agent: Agent, stubs: Sequence[Stub], rules_for: RulesFor, new: NewStubs
) -> tuple[Agent, list[Binding]]:
    """Changes the agent's tools to its own plus `stubs`, with the rules for them. Returns the agent and the bindings.
    Missing stubs are made, and added to `new`. If somebody else changes tools at the same time, the agent is fetched
    and changed again, at most twice.
    """
    last = "they are changed by somebody else at the same time"
    for repair in range(1 + REPAIRS):
        if repair:
            registry.forget_stubs(stubs)
            agent = gateway.agent(agent.id)
        try:
            synced = _sync_once(gateway, registry, agent, stubs, rules_for, new)
        except LettaError as fault:
            if not may_be_a_race(fault):
                raise
            last = fault.message
        else:
            if synced is not None:
                return synced
    registry.forget_stubs(stubs)
    raise LettaUnavailable(f"The agent's tools could not be set, {1 + REPAIRS} times in a row ({last}). Try again.")


def _sync_once(
    gateway: Gateway, registry: Registry, agent: Agent, stubs: Sequence[Stub], rules_for: RulesFor, new: NewStubs
) -> tuple[Agent, list[Binding]] | None:
    """Changes the agent once. Returns None if it then has not exactly the stubs of the bindings. Removes the tags of
    sweeps from the stubs, so that no sweep deletes a stub in use.
    """
    settled = registry.settled.find(agent, stubs)
    if settled is not None and settled.rules == rules_for(settled.bindings):
        registry.learn_settled(agent, settled)
        return agent, [*settled.bindings]
    bindings, called = registry.place_stubs(agent, stubs, new)
    if called:
        # Calling Letta took time, in which somebody may have changed the agent's own tools.
        agent = gateway.agent(agent.id)
    rules = rules_for(bindings)
    change = plan_toolset(agent, bindings, rules, registry.detached_stub_names(agent))
    if change is not None:
        agent = gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
    if not _has_exactly(agent, bindings):
        return None
    marked = [tool for tool in agent.tools if is_ours(tool) and has_sweep_tag(tool)]
    call_concurrently(lambda tool: gateway.tag_tool(tool.id, tags_without_sweep(tool)), marked)
    if change is None and not marked:
        registry.settled.note(agent, stubs, rules, bindings)
    return agent, bindings


def _has_exactly(agent: Agent, bindings: Sequence[Binding]) -> bool:
    """Whether the agent has the stubs of the bindings, unchanged, and no other stubs."""
    attached = {tool.id: tool for tool in agent.tools}
    ours = {tool.id for tool in agent.tools if is_ours(tool)}
    return ours == {binding.tool_id for binding in bindings} and not any(
        is_unusable_stub(attached, b) for b in bindings
    )
