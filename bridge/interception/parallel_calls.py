"""Switches the agent's setting for several calls in one reply on and back off.

From Letta 0.14 on, letta_v1_agent makes several calls in one reply only if this setting allows it. The first turn whose
client takes several calls switches the setting on. The first turn whose client does not, or that has no tools, switches
the setting back, if an entry in the metadata says that the bridge switched it on. If the owner of the agent did,
the setting stays on: a client that wants one call at a time gets the first call, and the other calls return that they
were not run. An unchanged setting costs no request to Letta.
"""

from __future__ import annotations

from bridge.interception.method import PreparedTurn
from bridge.letta.gateway import Agent, AgentChange
from bridge.turn import JsonObject

# The name of the bridge's entry in the agent's metadata.
METADATA_KEY = "letta-tool-bridge"
_SWITCHED_ON: JsonObject = {"parallel_tool_calls": "was off"}


def switch_parallel_calls(turn: PreparedTurn) -> None:
    """Switches the setting as the client of this turn needs it, unless tool rules prevent parallel calls."""
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
    return METADATA_KEY in agent.metadata


def change_to_switch_back(agent: Agent) -> AgentChange:
    """Returns the change that switches parallel calls off and removes the bridge's entry from the metadata."""
    metadata = {key: value for key, value in agent.metadata.items() if key != METADATA_KEY}
    return AgentChange(parallel_calls=False, metadata=metadata)


def _has_other_rules(agent: Agent) -> bool:
    """Returns whether the agent has tool rules other than requires_approval: then Letta offers no parallel calls."""
    return any(rule.get("type") != "requires_approval" for rule in agent.rules)
