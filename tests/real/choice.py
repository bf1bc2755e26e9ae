"""Which servers, types of agent and forms of reply a test against real servers is tried with.

`make test` tries each way in which the bridge catches calls once, not each combination: a server of each generation,
and on it the types of agent whose calls are caught in a way of their own. All servers and types are tried by
`make test-matrix`, and all types of the servers in TEST_LETTA: a list such as `0.16.1,0.8.17`, or `all`.
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
# Their calls are caught as those of the same type on 0.11.7.
_TRIED_ELSEWHERE = {("0.16.1", "memgpt_v2_agent")}
# The server of most users.
_USUAL = "0.16.1"


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice for a test with these marks. With `whole`, nothing is left out."""

    marks: Collection[str]
    servers: tuple[str, ...]
    whole: bool

    def versions(self) -> tuple[str, ...]:
        if self.whole or not {"one_server", "two_servers"} & set(self.marks):
            return self.servers
        if "one_server" in self.marks and _USUAL in self.servers:
            return (_USUAL,)
        return tuple(dict.fromkeys((self.servers[0], self.servers[-1])))

    def agent_types(self, version: str) -> tuple[str, ...]:
        """From 0.8 on, agents of the oldest type run in the same loop as those of the second."""
        types = agent_types(version)
        if self.whole:
            return types
        if {"one_server", "two_servers", "one_type"} & set(self.marks):
            return types[-1:]
        own = tuple(kind for kind in types if kind not in OLD_AGENTS and (version, kind) not in _TRIED_ELSEWHERE)
        return own or types

    def streamed(self, version: str, agent_type: str) -> tuple[bool, ...]:
        """Only for agents of the newest type does a streamed reply change the request to Letta: it asks for tokens.
        Both forms are tried on the oldest of the servers that have this type.
        """
        with_type = [one for one in self.servers if V1_AGENT in agent_types(one)]
        return (False, True) if self.whole or (version, agent_type) == (with_type[0], V1_AGENT) else (True,)


def wanted_versions() -> tuple[str, ...]:
    wanted = os.environ.get("TEST_LETTA", "")
    if wanted == "all":
        return tuple(VERSIONS)
    return tuple(wanted.split(",")) if wanted else ONE_OF_EACH_GENERATION


def choice_for(marks: Collection[str]) -> Choice:
    """Returns the choice of this run for a test with these marks."""
    return Choice(marks, wanted_versions(), IS_WHOLE)
