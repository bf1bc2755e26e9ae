"""Shows Letta's agents to clients as models. A model has its agent's name, or the id if the name is not unique."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf

from bridge.errors import LettaNotFound, UnknownModel
from bridge.letta.gateway import AGENT_ID, HELPER_PREFIX, Agent, AgentSummary, Gateway
from bridge.turn import ASIDE_SUFFIX

# Names and ids of the agents that a client may see; an empty set means all agents.
Visible = frozenset[str]
ALL: Visible = frozenset()

LIST_KEPT_SECONDS = 1.0


def model_names(agents: Sequence[AgentSummary]) -> list[str]:
    """Returns each agent's model name: its name, or its id if the name is not unique or no client could use it."""
    names = Counter(agent.name for agent in agents)
    return [agent.name if names[agent.name] == 1 and _can_be_model_name(agent.name) else agent.id for agent in agents]


def _can_be_model_name(name: str) -> bool:
    return bool(name) and name == name.strip() and not AGENT_ID.fullmatch(name) and not name.endswith(ASIDE_SUFFIX)


class Directory:
    """Finds the agent that a request's model means. Keeps the ids of names, to save calls to Letta."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._models: tuple[Sequence[tuple[str, AgentSummary]], float] = ((), -inf)

    def models(self, visible: Visible = ALL) -> Sequence[tuple[str, int]]:
        """Returns each visible agent's model name and Unix time of creation. The list may be LIST_KEPT_SECONDS old."""
        return _visible_models(self._kept_models(), visible)

    def _kept_models(self) -> Sequence[tuple[str, AgentSummary]]:
        models, until = self._models
        if self._clock() >= until:
            models = self._read_models()
            self._models = models, self._clock() + LIST_KEPT_SECONDS
        return models

    def _read_models(self) -> list[tuple[str, AgentSummary]]:
        """Fetches all agents with their model names, without the bridge's own helper agents."""
        agents = [agent for agent in self._gateway.agents() if not agent.name.startswith(HELPER_PREFIX)]
        return list(zip(model_names(agents), agents, strict=True))

    def model(self, model: str, visible: Visible = ALL) -> tuple[str, int]:
        """Returns what `models` has for the agent with this name or id, fetched now."""
        self.check_visible(model, visible)
        found = self.find(model)
        for name, created in _visible_models(self._read_models(), visible):
            if name in (found.name, found.id):
                return name, created
        raise _unknown_model(model)

    def check_visible(self, model: str, visible: Visible) -> None:
        """Raises UnknownModel, as for a missing agent, if `visible` is not empty and has neither name nor id."""
        if visible and model not in visible and not self._is_visible(model, visible):
            raise _unknown_model(model)

    def _is_visible(self, model: str, visible: Visible) -> bool:
        """Looks in the list of all agents: finding one agent takes another time than not finding it."""
        found = [agent for _, agent in self._kept_models() if model in (agent.id, agent.name)]
        # If several agents have the name, all of them must be visible: the name may mean any of them.
        return bool(found) and all(agent.id in visible or agent.name in visible for agent in found)

    def find_id(self, model: str) -> str:
        """Returns the id of the agent with this name, maybe from before it was renamed. An id is returned unchecked."""
        return self.known_id(model) or self._id_by_name(model)

    def known_id(self, model: str) -> str:
        """Returns what `find_id` does if that needs no call to Letta, otherwise ""."""
        return model if AGENT_ID.fullmatch(model) else self._ids.get(model, "")

    def find(self, model: str) -> Agent:
        """Fetches the agent with this name or id. Looks up a name again if its kept agent was deleted or renamed."""
        if AGENT_ID.fullmatch(model):
            return self._agent_by_id(model)
        known = self._ids.get(model)
        if known is not None:
            with suppress(LettaNotFound):
                agent = self._gateway.agent(known)
                if agent.name == model:
                    return agent
        return self._agent_by_id(self._id_by_name(model))

    def _agent_by_id(self, agent_id: str) -> Agent:
        try:
            return self._gateway.agent(agent_id)
        except LettaNotFound:
            raise _unknown_model(agent_id) from None

    def _id_by_name(self, name: str) -> str:
        """Asks Letta for the only agent with this name, and keeps its id. Forgets the id that was kept before."""
        self._ids.pop(name, None)
        found = self._gateway.agents_named(name)
        if not found:
            raise _unknown_model(name)
        if len(found) > 1:
            ids = ", ".join(agent.id for agent in found[:5])
            raise UnknownModel(
                f"{len(found)} agents have the name {name!r:.100}; use an id instead: {ids}.", param="model"
            )
        self._ids[name] = found[0].id
        return found[0].id


def _visible_models(models: Sequence[tuple[str, AgentSummary]], visible: Visible) -> list[tuple[str, int]]:
    """Returns name and creation time of the models that the client may see."""
    return [
        (name, agent.created) for name, agent in models if not visible or agent.id in visible or agent.name in visible
    ]


def _unknown_model(model: str) -> UnknownModel:
    return UnknownModel(
        f"There is no agent with the name or id {model!r:.100} on the Letta server; GET /v1/models lists them.",
        param="model",
    )
