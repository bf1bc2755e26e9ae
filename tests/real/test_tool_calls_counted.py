"""Calls to Letta that a change of the agent's tools costs, beyond reading the agent and sending the message."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest
import requests

from testbed.service import Service
from testbed.versions import V1_AGENT
from tests.real.toolsets import delete_tool, stubs_on, tool, unique
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = pytest.mark.real

TOOLS = 12
LOOK, PUT, READ, SET = "look up names", "put a stub", "read the agent", "set its tools"


@contextmanager
def bridge_of_one_worker(world: World) -> Iterator[Service]:
    """Starts a bridge of one worker, because each worker remembers separately what is on the server. Waits for the
    check of Letta that a bridge makes when it starts.
    """
    with world.start_bridge(WEB_CONCURRENCY="1") as started:
        assert requests.get(f"{started.url}/readyz", timeout=30).status_code == 200
        yield started


@pytest.fixture
def bridge(world: World) -> Iterator[Service]:
    with bridge_of_one_worker(world) as started:
        yield started


class Counted:
    """An agent behind a bridge whose calls are counted."""

    def __init__(self, agent: Agent, bridge: Service) -> None:
        self._agent = agent
        self.bridge = bridge

    def turn(self, tools: Sequence[Json]) -> Mapping[str, int]:
        proxy = self._agent.world.proxy
        proxy.wait_until_idle()
        proxy.clear()
        reply = self._agent.ask("!say ok", model=self._agent.id, tools=tools, bridge=self.bridge)
        assert reply.text == "ok"
        agent = f"/v1/agents/{self._agent.id}"
        kinds = {
            ("GET", "/v1/tools/"): LOOK,
            ("PUT", "/v1/tools/"): PUT,
            ("GET", agent): READ,
            ("PATCH", agent): SET,
            ("POST", f"{agent}/messages/stream"): "message",
            ("GET", "/v1/health/"): "version",
            ("GET", "/openapi.json"): "features",
            ("GET", "/v1/runs/active"): "runs",
        }
        proxy.wait_until_idle()
        assert int(reply.headers["X-Bridge-Letta-Calls"]) == len(proxy.calls())
        found = Counter(kinds.get((call.method, call.path), f"{call.method} {call.path}") for call in proxy.calls())
        found.subtract({READ: 1, "message": 1})
        return +found


@pytest.mark.two_servers
def test_a_turn_costs_only_the_calls_for_what_has_changed(world: World, agent_type: str, bridge: Service) -> None:
    agent, part = world.agent(agent_type), unique("counted")
    some = [tool(f"{part}_{number}") for number in range(TOOLS)]
    changed = [tool(f"{part}_0", "Changed."), *some[1:]]
    one_more = [*some, tool(f"{part}_{TOOLS}")]
    # Servers before 0.11.7 look up one name at a time.
    looks = 1 if world.at_least("0.11.7") else TOOLS
    # Before a worker takes the first name, it asks once which server this is.
    identity = Counter({LOOK: 1})
    native = agent_type == V1_AGENT and world.at_least("0.16.2")
    # The first tools switch parallel calls on for such an agent, and the removal of the last one switches them off.
    switch = {SET: 1} if agent_type == V1_AGENT and world.at_least("0.14.0") else {}
    counted = Counted(agent, bridge)
    # A change of an agent resets a setting on 0.14. The bridge reads the setting first, to keep it.
    keep = {READ: 1} if world.at_least("0.14.0") and not world.at_least("0.15.0") else {}
    change = {SET: 1, **keep}
    # An agent that is new to the bridge may be in the middle of a run.
    runs = {READ: 1, **({"runs": 1} if world.at_least("0.11.0") else {})}
    assert counted.turn([]) == {"version": 1, "features": 1, **runs}
    one_put = Counter({LOOK: 1, PUT: 1, READ: 1}) + Counter(change)
    expected: Mapping[str, tuple[Sequence[Json], Mapping[str, int]]] = {
        "all new": (some, Counter({LOOK: looks, PUT: TOOLS, READ: 1}) + identity + Counter(change)),
        "unchanged": (some, {}),
        "one changed": (changed, one_put),
        "the old one again": (some, change),
        "one new": (one_more, one_put),
        "all gone": ([], change),
        "still gone": ([], {}),
        "back again": (some, change),
    }
    for case, (tools, calls) in expected.items():
        extra = switch if case in ("all new", "all gone", "back again") else {}
        assert counted.turn(tools) == Counter({} if native else calls) + Counter(extra), case

    with bridge_of_one_worker(world) as restarted:
        counted.bridge = restarted
        counted.turn(some)
        assert counted.turn(some) == {}
    with bridge_of_one_worker(world) as restarted:
        counted.bridge = restarted
        first = {"version": 1, "features": 1}
        assert counted.turn(some) == first, "after a restart"
        assert counted.turn([]) == Counter({} if native else change) + Counter(switch)
    with bridge_of_one_worker(world) as restarted:
        counted.bridge = restarted
        again = Counter() if native else Counter({LOOK: looks, READ: 1}) + identity + Counter(change)
        assert counted.turn(some) == Counter(first) + again + Counter(switch), "back again after a restart"
    agent.delete()
    for row in stubs_on(world, part):
        delete_tool(world, row["id"])
