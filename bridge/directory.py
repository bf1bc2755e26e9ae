"""Agents as models. A model has its agent's name, or its id if the name would not lead to that agent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf

from bridge.errors import LettaNotFound, UnknownModel
from bridge.letta.gateway import AGENT_ID, HELPER_PREFIX, Agent, AgentSummary, Gateway
from bridge.turn import ASIDE_SUFFIX

# Names and ids of agents; an empty set means all agents.
Visible = frozenset[str]
ALL: Visible = frozenset()

LIST_KEPT_SECONDS = 1.0


def model_names(agents: Sequence[AgentSummary]) -> list[str]:
    """Returns the model name of each agent, in the same order."""
    names = Counter(agent.name for agent in agents)
    return [agent.name if names[agent.name] == 1 and _can_be_a_name(agent.name) else agent.id for agent in agents]


def _can_be_a_name(name: str) -> bool:
    return bool(name) and name == name.strip() and not AGENT_ID.fullmatch(name) and not name.endswith(ASIDE_SUFFIX)


class Directory:
    """Finds agents. It remembers which agent a name led to, as long as that agent has the name."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._listed: tuple[Sequence[tuple[str, AgentSummary]], float] = ((), -inf)

    def models(self, visible: Visible = ALL) -> Sequence[tuple[str, int]]:
        """Returns the model name and time of creation of every visible agent.

        The list is kept for LIST_KEPT_SECONDS, as clients ask for it again and again.
        """
        listed, until = self._listed
        if self._clock() >= until:
            listed = self._listed_now()
            self._listed = listed, self._clock() + LIST_KEPT_SECONDS
        return _seen(listed, visible)

    def _listed_now(self) -> list[tuple[str, AgentSummary]]:
        agents = [agent for agent in self._gateway.agents() if not agent.name.startswith(HELPER_PREFIX)]
        return list(zip(model_names(agents), agents, strict=True))

    def model(self, model: str, visible: Visible = ALL) -> tuple[str, int]:
        """Returns the model name and time of creation of the agent with this name or id."""
        self.admit(model, visible)
        found = self.find(model)
        for name, created in _seen(self._listed_now(), visible):
            if name in (found.name, found.id):
                return name, created
        raise _unknown(model)

    def admit(self, model: str, visible: Visible) -> None:
        """Raises UnknownModel if the agent with this name or id is not visible, as if there were no such agent."""
        if visible and model not in visible and not self._leads_to(model, visible):
            raise _unknown(model)

    def _leads_to(self, model: str, visible: Visible) -> bool:
        if AGENT_ID.fullmatch(model):
            return self._by_id(model).name in visible
        named = self._gateway.agents_named(model)
        # If several agents have the name, it may lead to any of them.
        return bool(named) and all(agent.id in visible for agent in named)

    def locate(self, model: str) -> str:
        """Returns the id of the agent with this name or id. A name that is remembered needs no call to the server."""
        if AGENT_ID.fullmatch(model):
            return model
        return self._ids.get(model) or self._id_by_name(model)

    def find(self, model: str) -> Agent:
        """Returns the agent with this name or id as the server has it now, also one that was made a second ago."""
        if AGENT_ID.fullmatch(model):
            return self._by_id(model)
        known = self._ids.get(model)
        if known is not None:
            with suppress(LettaNotFound):
                agent = self._gateway.agent(known)
                if agent.name == model:
                    return agent
        return self._by_id(self._id_by_name(model))

    def _by_id(self, agent_id: str) -> Agent:
        try:
            return self._gateway.agent(agent_id)
        except LettaNotFound:
            raise _unknown(agent_id) from None

    def _id_by_name(self, name: str) -> str:
        self._ids.pop(name, None)
        found = self._gateway.agents_named(name)
        if not found:
            raise _unknown(name)
        if len(found) > 1:
            ids = ", ".join(agent.id for agent in found[:5])
            raise UnknownModel(
                f"{len(found)} agents have the name {name!r:.100}; use an id instead: {ids}.", param="model"
            )
        self._ids[name] = found[0].id
        return found[0].id


def _seen(listed: Sequence[tuple[str, AgentSummary]], visible: Visible) -> list[tuple[str, int]]:
    return [
        (name, agent.created) for name, agent in listed if not visible or agent.id in visible or agent.name in visible
    ]


def _unknown(model: str) -> UnknownModel:
    return UnknownModel(
        f"There is no agent with the name or id {model!r:.100} on the Letta server; GET /v1/models lists them.",
        param="model",
    )
