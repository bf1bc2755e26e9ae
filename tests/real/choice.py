"""Which servers, types of agent and forms of reply a test against real servers is tried with.

`make test` tries each way in which the bridge catches calls, not each combination: one server of each generation and
one type of agent for each of Letta's agent loops. All servers and types are tried by `make test-matrix`, and all types
of the named servers where TEST_LETTA is set: a list such as `0.16.1,0.8.17`, or `all`.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass

from testbed.versions import OLD_AGENTS, V1_AGENT, VERSIONS, agent_types
from tests.faults.scale import FULL

# Whether this run leaves nothing out.
IS_WHOLE = "TEST_LETTA" in os.environ or FULL
ONE_OF_EACH_GENERATION = ("0.8.17", "0.11.7", "0.16.1", "0.16.8")


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice for a test with these marks. With `whole`, nothing is left out."""

    marks: Collection[str]
    servers: tuple[str, ...]
    whole: bool

    def versions(self) -> tuple[str, ...]:
        if self.whole or "two_servers" not in self.marks:
            return self.servers
        return tuple(dict.fromkeys((self.servers[0], self.servers[-1])))

    def agent_types(self, version: str) -> tuple[str, ...]:
        """From 0.8 on, agents of the oldest type run in the same loop as those of the second."""
        types = agent_types(version)
        if self.whole:
            return types
        if {"two_servers", "one_type"} & set(self.marks):
            return types[-1:]
        return types if types == OLD_AGENTS else tuple(kind for kind in types if kind not in OLD_AGENTS)

    def streamed(self, agent_type: str) -> tuple[bool, ...]:
        """Only for agents of the newest type does a streamed reply change the request to Letta: it asks for tokens."""
        return (False, True) if self.whole or agent_type == V1_AGENT else (True,)


def wanted_versions() -> tuple[str, ...]:
    wanted = os.environ.get("TEST_LETTA", "")
    if wanted == "all":
        return tuple(VERSIONS)
    return tuple(wanted.split(",")) if wanted else ONE_OF_EACH_GENERATION


def choice_for(marks: Collection[str]) -> Choice:
    """Returns the choice of this run for a test with these marks."""
    return Choice(marks, wanted_versions(), IS_WHOLE)
