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
    """Returns the model name of each agent, in the same order.

    A model has its agent's name, or the id if several agents have the name or a client could not use it as a model.
    """
    names = Counter(agent.name for agent in agents)
    return [agent.name if names[agent.name] == 1 and _can_be_model_name(agent.name) else agent.id for agent in agents]


def _can_be_model_name(name: str) -> bool:
    """Returns whether a client can use an agent's name as a model.

    A client cannot use a name that is empty, begins or ends with white space, looks like an agent's id, or ends in
    ASIDE_SUFFIX.
    """
    return bool(name) and name == name.strip() and not AGENT_ID.fullmatch(name) and not name.endswith(ASIDE_SUFFIX)


class Directory:
    """Finds the agent that a request's model means. Keeps the id that belongs to a name, to save calls to Letta.

    `clock` returns seconds; only differences count.
    """

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._models: tuple[Sequence[tuple[str, AgentSummary]], float] = ((), -inf)

    def models(self, visible: Visible = ALL) -> Sequence[tuple[str, int]]:
        """Returns the model name and the creation time, a Unix time, of every visible agent.

        The list may be LIST_KEPT_SECONDS old: it is kept so long, because clients ask for it often.
        """
        models, until = self._models
        if self._clock() >= until:
            models = self._read_models()
            self._models = models, self._clock() + LIST_KEPT_SECONDS
        return _visible_models(models, visible)

    def _read_models(self) -> list[tuple[str, AgentSummary]]:
        """Fetches all agents from Letta, without the bridge's own helper agents. Returns model names and agents."""
        agents = [agent for agent in self._gateway.agents() if not agent.name.startswith(HELPER_PREFIX)]
        return list(zip(model_names(agents), agents, strict=True))

    def model(self, model: str, visible: Visible = ALL) -> tuple[str, int]:
        """Returns the model name and the creation time, a Unix time, of the agent with this name or id.

        Both are fetched from Letta now, not from the list that `models` keeps. Raises UnknownModel if there is no such
        agent, if the agent is not visible, or if several agents have the name.
        """
        self.check_visible(model, visible)
        found = self.find(model)
        for name, created in _visible_models(self._read_models(), visible):
            if name in (found.name, found.id):
                return name, created
        raise _unknown_model(model)

    def check_visible(self, model: str, visible: Visible) -> None:
        """Raises UnknownModel if the client may not see the agent with this name or id.

        The error is the same as for an agent that does not exist. If `visible` is empty, never raises. Asks Letta only
        if `model` is not in `visible`, because `visible` may have an agent's id while `model` is its name.
        """
        if visible and model not in visible and not self._is_visible(model, visible):
            raise _unknown_model(model)

    def _is_visible(self, model: str, visible: Visible) -> bool:
        """Returns whether the agent with this name or id, fetched from Letta, is one of the visible agents.

        Used if `model` itself is not in `visible`: an agent's id is visible if the agent's name is in `visible`, and a
        name is visible if the agent's id is. Raises UnknownModel if `model` is an id that no agent has.
        """
        if AGENT_ID.fullmatch(model):
            return self._agent_by_id(model).name in visible
        named = self._gateway.agents_named(model)
        # If several agents have the name, all of them must be visible: the name may mean any of them.
        return bool(named) and all(agent.id in visible for agent in named)

    def find_id(self, model: str) -> str:
        """Returns the id of the agent with this name or id. Calls Letta only if the id of the name is not kept yet.

        An id is returned as it is, without a check that the agent exists. The kept id of a name may be out of date if
        agents were renamed. Raises UnknownModel if not exactly one agent has the name.
        """
        if AGENT_ID.fullmatch(model):
            return model
        return self._ids.get(model) or self._id_by_name(model)

    def find(self, model: str) -> Agent:
        """Fetches the agent with this name or id from Letta. Raises UnknownModel if there is not exactly one.

        If the agent with the kept id of a name was deleted or renamed, looks up the name again.
        """
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
        """Fetches the agent from Letta. Raises UnknownModel if there is no agent with the id."""
        try:
            return self._gateway.agent(agent_id)
        except LettaNotFound:
            raise _unknown_model(agent_id) from None

    def _id_by_name(self, name: str) -> str:
        """Asks Letta for the agent with this name. Returns the agent's id and keeps it for `find_id` and `find`.

        Forgets the id that was kept before. Raises UnknownModel if not exactly one agent has the name.
        """
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
    """Returns the model name and the creation time (Unix time) of those models whose agent the client may see.

    `visible` has names and ids of agents; if it is empty, the client may see all agents.
    """
    return [
        (name, agent.created) for name, agent in models if not visible or agent.id in visible or agent.name in visible
    ]


def _unknown_model(model: str) -> UnknownModel:
    return UnknownModel(
        f"There is no agent with the name or id {model!r:.100} on the Letta server; GET /v1/models lists them.",
        param="model",
    )
