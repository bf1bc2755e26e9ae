"""Remembers agents whose toolset needed no change, so that the same toolset is not compared again tool by tool.

An agent's tool that nobody changed comes as the same object as before, and so do the stubs of an unchanged request.
What was found of them holds as long as they are the same objects.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

from bridge.letta.gateway import Agent, Tool
from bridge.sync.plan import names_in_rules_without_tool
from bridge.turn import Binding, JsonObject, Stub

MAX_AGENTS = 256
# The tools of all these agents together. Agents with the same tools share them.
MAX_TOOLS = 2_000


@dataclass(frozen=True, slots=True)
class SettledToolset:
    """What an agent had (`tools`, `agent_rules`) when that was exactly what was wanted (`stubs`, `rules`)."""

    tools: tuple[Tool, ...]
    agent_rules: tuple[JsonObject, ...]
    stubs: Sequence[Stub]
    rules: Sequence[JsonObject]
    bindings: Sequence[Binding]

    def is_of(self, agent: Agent, stubs: Sequence[Stub]) -> bool:
        """Whether the agent has the same as then, and the same stubs are wanted."""
        return _are_same(self.tools, agent.tools) and _are_same(self.stubs, stubs) and self.agent_rules == agent.rules


def _are_same(one: Sequence[object], other: Sequence[object]) -> bool:
    return one is other or (len(one) == len(other) and all(map(is_, one, other)))


class SettledToolsets:
    """The toolsets of agents that needed no change in their last turn. Many threads use one object."""

    def __init__(self) -> None:
        self._settled: OrderedDict[str, SettledToolset] = OrderedDict()  # by the agent's id
        self._tools = 0
        self._lock = threading.Lock()

    def find(self, agent: Agent, stubs: Sequence[Stub]) -> SettledToolset | None:
        with self._lock:
            settled = self._settled.get(agent.id)
            if settled is not None:
                self._settled.move_to_end(agent.id)
        return settled if settled is not None and settled.is_of(agent, stubs) else None

    def note(
        self, agent: Agent, stubs: Sequence[Stub], rules: Sequence[JsonObject], bindings: Sequence[Binding]
    ) -> None:
        """Remembers that the agent has exactly these bindings for the stubs, and the rules for them. Does not if it has
        rules of a tool that it lacks: then the server may have to be asked whose rules these are.
        """
        if names_in_rules_without_tool(agent):
            return
        settled = SettledToolset(agent.tools, agent.rules, stubs, rules, bindings)
        with self._lock:
            self._forget(agent.id)
            self._settled[agent.id] = settled
            self._tools += len(settled.tools)
            while len(self._settled) > MAX_AGENTS or self._tools > MAX_TOOLS:
                self._forget(next(iter(self._settled)))

    def _forget(self, agent_id: str) -> None:
        forgotten = self._settled.pop(agent_id, None)
        self._tools -= len(forgotten.tools) if forgotten else 0
