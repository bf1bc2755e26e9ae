"""Shows Letta's agents to clients as models. A model has its agent's name. If the name is not unique, it has the name
with the first digits of the agent's id behind it, as in `Ada@1234abcd`, or else the id.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from math import inf

from bridge.errors import LettaNotFound, UnknownModel
from bridge.letta.gateway import AGENT_ID, HELPER_PREFIX, Agent, AgentSummary, Gateway
from bridge.turn import ASIDE_SUFFIX

# Names, with digits or without, and ids of the agents that a client may see; an empty set means all agents.
Visible = frozenset[str]
ALL: Visible = frozenset()
Models = Sequence[tuple[str, AgentSummary]]

LIST_KEPT_SECONDS = 1.0
# Seconds for which a list is good enough for the names in an error.
NAMES_KEPT_SECONDS = 60.0
# Limits for the error about an unknown model: names that it lists, names among which the nearest is sought, and the
# length of a name.
LISTED_NAMES = 10
COMPARED_NAMES = 300
LONGEST_NAME = 100
LISTED_TWINS = 5
# How many names that were not found are remembered.
MOST_MISSED = 100

_WITH_DIGITS = re.compile(r"(.+)@[0-9a-f]{8}", re.DOTALL)


def model_names(agents: Sequence[AgentSummary | Agent]) -> list[str]:
    """Returns each agent's model name. It is the id if no client could use another, or if another would not be unique.
    The digits are from the id, so a model name stays the same whatever other agents there are.
    """
    names = Counter(agent.name for agent in agents)
    longer = Counter(map(name_with_digits, agents))

    def model_name(agent: AgentSummary | Agent) -> str:
        if not _can_be_model_name(agent.name):
            return agent.id
        if names[agent.name] == 1:
            return agent.name
        name = name_with_digits(agent)
        return name if longer[name] == 1 and name not in names else agent.id

    return list(map(model_name, agents))


def name_with_digits(agent: AgentSummary | Agent) -> str:
    return f"{agent.name}@{agent.id.removeprefix('agent-')[:8]}"


def sees(visible: Visible, agent: AgentSummary | Agent) -> bool:
    return not visible or not visible.isdisjoint({agent.id, agent.name, name_with_digits(agent)})


def _can_be_model_name(name: str) -> bool:
    return bool(name) and name == name.strip() and not AGENT_ID.fullmatch(name) and not name.endswith(ASIDE_SUFFIX)


class Directory:
    """Finds the agent that a request's model means. Keeps the ids of names, to save calls to Letta."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float] = time.monotonic) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ids: dict[str, str] = {}
        self._models: tuple[Models, float] = ((), -inf)
        # All agents as they were last read, for the names in errors, and when.
        self._seen: tuple[Models, float] = ((), -inf)
        self._missed: set[str] = set()

    def models(self, visible: Visible = ALL) -> Sequence[tuple[str, int]]:
        """Returns each visible agent's model name and Unix time of creation. The list may be LIST_KEPT_SECONDS old."""
        return [(name, agent.created) for name, agent in _visible_models(self._kept_models(), visible)]

    def _kept_models(self) -> Models:
        models, until = self._models
        if self._clock() >= until:
            models = self._read_models()
            self._models = models, self._clock() + LIST_KEPT_SECONDS
        return models

    def _read_models(self) -> Models:
        """Fetches all agents with their model names, without the bridge's own helper agents."""
        agents = [agent for agent in self._gateway.agents() if not agent.name.startswith(HELPER_PREFIX)]
        models = list(zip(model_names(agents), agents, strict=True))
        self._seen = models, self._clock()
        return models

    def model(self, model: str, visible: Visible = ALL) -> tuple[str, int]:
        """Returns what `models` has for the agent with this name or id, fetched now."""
        self.check_visible(model, visible)
        models = self._read_models()
        agent = self._only_one(model, _agents_meant(model, models), visible)
        return next((name, one.created) for name, one in models if one.id == agent.id)

    def check_visible(self, model: str, visible: Visible) -> None:
        """Raises UnknownModel, as for a missing agent, if `visible` is not empty and has neither name nor id."""
        if visible and model not in visible and not self._is_visible(model, visible):
            raise self._unknown_model(model, visible)

    def _is_visible(self, model: str, visible: Visible) -> bool:
        """Looks in the list of all agents: finding one agent takes another time than not finding it."""
        found = _agents_meant(model, self._kept_models())
        # If several agents have the name, all of them must be visible: the name may mean any of them.
        return bool(found) and all(sees(visible, agent) for agent in found)

    def find_id(self, model: str, visible: Visible | None = None) -> str:
        """Returns the id of the agent with this name, maybe from before it was renamed. An id is returned unchecked.
        Only with `visible`, the error for a missing agent names others, and only those that are visible.
        """
        return self.known_id(model) or self._id_by_name(model, visible)

    def known_id(self, model: str) -> str:
        """Returns what `find_id` does if that needs no call to Letta, otherwise ""."""
        return model if AGENT_ID.fullmatch(model) else self._ids.get(model, "")

    def find(self, model: str, visible: Visible | None = None) -> Agent:
        """Fetches the agent with this name or id. Looks up a name again if its kept agent was deleted or renamed. For
        `visible`, see `find_id`.
        """
        if AGENT_ID.fullmatch(model):
            return self._agent_by_id(model, visible)
        known = self._ids.get(model)
        if known is not None:
            with suppress(LettaNotFound):
                agent = self._gateway.agent(known)
                if model in (agent.name, name_with_digits(agent)):
                    return agent
        return self._agent_by_id(self._id_by_name(model, visible), visible)

    def _agent_by_id(self, agent_id: str, visible: Visible | None) -> Agent:
        try:
            return self._gateway.agent(agent_id)
        except LettaNotFound:
            raise self._unknown_model(agent_id, visible) from None

    def _id_by_name(self, name: str, visible: Visible | None) -> str:
        """Asks Letta for the only agent with this name, and keeps its id. Forgets the id that was kept before."""
        self._ids.pop(name, None)
        self._ids[name] = self._only_one(name, self._agents_named(name), visible).id
        return self._ids[name]

    def _agents_named(self, name: str) -> Sequence[AgentSummary]:
        """Asks Letta for the agents that a name means. A turn asks twice for a missing agent: the second time, all
        agents are read, unless they are known, because that costs no further call and the error can name them.
        """
        if name in self._missed and self._clock() - self._seen[1] >= NAMES_KEPT_SECONDS:
            self._missed.discard(name)
            return _agents_meant(name, self._read_models())
        found = self._gateway.agents_named(name)
        longer = _WITH_DIGITS.fullmatch(name)
        if not found and longer:
            found = [agent for agent in self._gateway.agents_named(longer[1]) if name_with_digits(agent) == name]
        if not found:
            self._missed = {*list(self._missed)[: MOST_MISSED - 1], name}
        return found

    def _only_one(self, model: str, found: Sequence[AgentSummary], visible: Visible | None) -> AgentSummary:
        if len(found) == 1:
            return found[0]
        if not found:
            raise self._unknown_model(model, visible)
        others = ", ".join(f"{name_with_digits(agent)!r:.120} ({agent.id})" for agent in found[:LISTED_TWINS])
        others += ", …" if len(found) > LISTED_TWINS else ""
        raise UnknownModel(
            f"{len(found)} agents have the name {model!r:.100}. Use one of these, or an id, as the model: {others}.",
            param="model",
        )

    def _unknown_model(self, model: str, visible: Visible | None) -> UnknownModel:
        """Returns an error that depends only on `model` and on what the client may see."""
        seen = () if visible is None else _visible_models(self._seen[0], visible)
        names = [name for name, _ in seen if name != model and len(name) <= LONGEST_NAME]
        nearest = _nearest(model, names)
        meant = f"; did you mean {nearest!r}?" if nearest else "."
        listed = ", ".join(map(repr, names[:LISTED_NAMES]))
        if len(names) > LISTED_NAMES:
            rest = f"The first of your agents: {listed}; GET /v1/models lists all."
        else:
            rest = f"Your agents: {listed}." if names else "GET /v1/models lists the agents."
        return UnknownModel(f"There is no agent with the name or id {model!r:.100}{meant} {rest}", param="model")


def _agents_meant(model: str, models: Models) -> list[AgentSummary]:
    """Returns the agents that have `model` as their id or name, or else as their name with digits."""
    agents = [agent for _, agent in models]
    found = [agent for agent in agents if model in (agent.id, agent.name)]
    return found or [agent for agent in agents if name_with_digits(agent) == model]


def _visible_models(models: Models, visible: Visible) -> Models:
    return [(name, agent) for name, agent in models if sees(visible, agent)]


def _nearest(model: str, names: Sequence[str]) -> str:
    """Returns the name that is most like `model`, whatever the case; "" if none is. Ids are all alike, so none is."""
    if AGENT_ID.fullmatch(model):
        return ""
    compared = {name.casefold(): name for name in names[:COMPARED_NAMES] if not AGENT_ID.fullmatch(name)}
    found = get_close_matches(model[:LONGEST_NAME].casefold(), compared, n=1)
    return compared[found[0]] if found else ""
