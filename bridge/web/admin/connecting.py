"""The data of the page that says how each client is connected: the recipes, with the bridge's own values filled in."""

from __future__ import annotations

from typing import Any

from bridge.directory import model_names
from bridge.errors import LettaError
from bridge.letta.gateway import HELPER_PREFIX, Agent
from bridge.operation.recipes import Places, load_recipes, name_in_recipes
from bridge.passthrough.rights import serves_letta
from bridge.web.admin.page_data import PageData

# What stands for a key that only its client knows, and for an agent if there is none.
EXAMPLE = Places()
Data = dict[str, Any]


def connect_data(page: PageData) -> Data:
    """Returns the recipes for the agent in the address's argument `agent`, an id; else for the first agent."""
    settings, agents = page.parts.settings, _agents(page)
    chosen = next((agent for agent in agents if agent.id == page.arguments.get("agent")), agents[0] if agents else None)
    places = Places(
        origin=page.origin,
        key=EXAMPLE.key if settings.api_keys else "anything",
        agent=_name_of(chosen, agents) if chosen else EXAMPLE.agent,
    )
    has_letta = serves_letta(settings)
    return {
        "agents": [{"id": agent.id, "name": agent.name} for agent in agents],
        "agent": chosen.id if chosen else "",
        "values": places.values(),
        "key_names": sorted({key.name for key in settings.api_keys if _may_use(key.agents, chosen)}),
        "has_keys": bool(settings.api_keys),
        "only_this_machine": settings.serves_this_machine_without_keys,
        "recipes": [recipe.filled(places) for recipe in load_recipes() if has_letta or recipe.needs != "letta"],
    }


def _agents(page: PageData) -> list[Agent]:
    """Returns the agents by name, without the bridge's own helpers. Without Letta there are none, with a warning."""
    try:
        agents = page.snapshot().agents
    except LettaError as failure:
        page.warnings.append(f"{failure.message} So the agents are missing here.")
        return []
    shown = [agent for agent in agents if not agent.name.startswith(HELPER_PREFIX)]
    return sorted(shown, key=lambda agent: (agent.name.lower(), agent.id))


def _name_of(chosen: Agent, agents: list[Agent]) -> str:
    return name_in_recipes(model_names(agents)[agents.index(chosen)], chosen.id)


def _may_use(visible: frozenset[str], agent: Agent | None) -> bool:
    return not visible or agent is None or bool({agent.id, agent.name} & visible)
