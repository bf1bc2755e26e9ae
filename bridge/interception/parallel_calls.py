"""Several calls in one reply: letta_v1_agent from 0.14 on makes them only if a setting of the agent allows it.

The first request that takes several calls switches the setting on, and the first that does not switches it back, as
the client's tools come and go. An unchanged setting costs no call. A mark in the agent's metadata, set and removed in
the same call, says that the bridge did it. If the owner has switched it on, it stays on: a client that wants one call
at a time gets the first, and the agent is told about the others.
"""

from __future__ import annotations

from bridge.interception.method import PreparedTurn
from bridge.letta.gateway import Agent, AgentChange
from bridge.turn import JsonObject

METADATA_KEY = "letta-tool-bridge"
_SWITCHED_ON: JsonObject = {"parallel_tool_calls": "was off"}


def switch_parallel_calls(turn: PreparedTurn) -> None:
    agent = turn.agent
    if not turn.features.parallel_calls:
        return
    if turn.bindings and turn.parallel:
        if not agent.parallel_calls and not _has_other_rules(agent):
            metadata = {**agent.metadata, METADATA_KEY: _SWITCHED_ON}
            turn.gateway.change_agent(agent.id, AgentChange(parallel_calls=True, metadata=metadata))
    elif is_switched_on_by_bridge(agent):
        turn.gateway.change_agent(agent.id, change_to_switch_back(agent))


def is_switched_on_by_bridge(agent: Agent) -> bool:
    """Whether the bridge has switched the setting on."""
    return METADATA_KEY in agent.metadata


def change_to_switch_back(agent: Agent) -> AgentChange:
    metadata = {key: value for key, value in agent.metadata.items() if key != METADATA_KEY}
    return AgentChange(parallel_calls=False, metadata=metadata)


def _has_other_rules(agent: Agent) -> bool:
    """Letta offers no parallel calls to an agent with rules of any other kind."""
    return any(rule.get("type") != "requires_approval" for rule in agent.rules)
