"""The agent's toolset becomes the request's toolset: plan, apply, and repair what another writer did meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.errors import LettaConflict, LettaError, LettaMissing, LettaUnavailable
from bridge.letta.gateway import Agent, AgentChange, Gateway
from bridge.sync.ownership import is_ours
from bridge.sync.plan import drifted, plan_toolset
from bridge.sync.registry import Registry
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
    for _ in range(1 + REPAIRS):
        registry.learn(agent.tools)
        bindings, settled = _settled_bindings(registry, agent, stubs)
        if not settled:
            # Putting stubs took time in which somebody may have changed the agent's own tools.
            agent = gateway.agent(agent.id)
        change = plan_toolset(agent, bindings, rules_for(bindings), registry.names())
        if change is None and not _adrift(agent, bindings):
            return agent, bindings
        if change is not None:
            try:
                agent = gateway.change_agent(agent.id, AgentChange(tool_ids=change.tool_ids, rules=change.rules))
            except LettaError as fault:
                if not _may_be_a_race(fault):
                    raise
                registry.forget(stub.digest for stub in stubs)
                agent = gateway.agent(agent.id)
                continue
        if _holds(agent, bindings):
            return agent, bindings
    raise LettaUnavailable(
        "The agent's tools keep being changed by somebody else while the bridge sets them. Try again."
    )


def _settled_bindings(registry: Registry, agent: Agent, stubs: Sequence[Stub]) -> tuple[list[Binding], bool]:
    """Bindings of all stubs, and whether they were known without a call."""
    known = registry.known(stubs)
    registry.forget(binding.stub.digest for binding in _adrift(agent, known))
    before = len(registry.known(stubs))
    return registry.place(stubs), before == len(stubs)


def _adrift(agent: Agent, bindings: Sequence[Binding]) -> list[Binding]:
    """Bindings whose stub the agent has in another form than was put on the server."""
    attached = {tool.id: tool for tool in agent.tools}
    return [
        binding for binding in bindings if binding.tool_id in attached and drifted(attached[binding.tool_id], binding)
    ]


def _holds(agent: Agent, bindings: Sequence[Binding]) -> bool:
    ours = {tool.id for tool in agent.tools if is_ours(tool)}
    return ours == {binding.tool_id for binding in bindings} and not _adrift(agent, bindings)


def _may_be_a_race(fault: LettaError) -> bool:
    """Letta answers 404, 409 or 500, by version, to a list of tools that holds one that is gone."""
    return isinstance(fault, LettaConflict | LettaMissing) or fault.code == LettaError.code
