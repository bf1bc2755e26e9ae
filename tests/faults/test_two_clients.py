"""Two clients with different tools use one agent in turn, through two workers or two machines."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.redis import Redis
from testbed.service import Service
from tests.faults.client import PersistentTalk
from tests.faults.history import History, Round, question_of, result_of
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import ANSWER, tool
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict, pytest.mark.one_type]

# Both have a tool `read`, with different parameters.
FIRST = [tool("read", "Reads a path.", path={"type": "string"}), tool("weather", "Tells.", city={"type": "string"})]
SECOND = [tool("read", "Reads a page.", page={"type": "string"}), tool("clock", "Tells the time.")]
TOOLSETS = [frozenset(one["function"]["name"] for one in tools) for tools in (FIRST, SECOND)]
# An agent's context holds more than this.
ROUNDS_OF_ONE_AGENT = 50
# In full, the promised number of rounds on one server, and fewer on the others.
LONG = ("0.16.1", "letta_v1_agent")


@pytest.fixture(params=["local", "redis"])
def bridges(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> Iterator[list[Service]]:
    """One bridge of two workers, or two bridges that share only a Redis."""
    waiting = {"BRIDGE_TOOL_WAIT": "30"}
    with ExitStack() as stack:
        if request.param == "local":
            yield [stack.enter_context(world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), **waiting))]
            return
        redis = stack.enter_context(Redis())
        shared = {"REDIS_URL": redis.url, "WEB_CONCURRENCY": "1", **waiting}
        yield [stack.enter_context(world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path / name), **shared)) for name in "ab"]


@pytest.mark.fault("two clients with different tools on one agent: rounds")
@pytest.mark.timeout(3000)
def test_no_tool_leaks_and_nothing_is_lost_or_doubled(
    world: World, agent_type: str, bridges: list[Service], cases: Cases
) -> None:
    full = 1_000 if (world.version, agent_type) == LONG else 100
    total = left = int(os.environ.get("TEST_ROUNDS") or scaled(6, full))
    at_once = 0.0
    while left > 0:
        rounds = min(left, ROUNDS_OF_ONE_AGENT)
        left -= rounds
        world.model.clear()
        agent = world.agent(agent_type)
        before = agent.fingerprint()
        history = History()
        began = time.monotonic()
        with ThreadPoolExecutor(2) as pool:
            clients = [
                pool.submit(client, agent, name, tools, parameter, rounds // 2, bridges, history)
                for name, tools, parameter in (("one", FIRST, "path"), ("two", SECOND, "page"))
            ]
            for done in clients:
                done.result()
        at_once += time.monotonic() - began
        assert agent.ask("bye", bridge=bridges[0]).text == "You said: bye"
        assert history.faults(world.model.requests(), TOOLSETS) == []
        assert len(history.rounds) == rounds // 2 * 2
        assert agent.fingerprint() == before
        assert not world.model.refusals
        agent.delete()
        cases.passed(len(history.rounds))
    agent, alone, began = world.agent(agent_type), min(total, ROUNDS_OF_ONE_AGENT), time.monotonic()
    client(agent, "alone", FIRST, "path", alone, bridges, History())
    ratio = (total / at_once) / (alone / (time.monotonic() - began))
    cases.figure(f"throughput, as a part of one client's alone ({world.version}, {agent_type})", f"{ratio:.2f}")
    agent.delete()


def client(
    agent: Agent, name: str, tools: list[Json], parameter: str, rounds: int, bridges: list[Service], history: History
) -> None:
    for number in range(rounds):
        mark = f"{name}-{number}"
        talk = PersistentTalk(agent, *tools, stream=number % 2 == 0, bridge=bridges[number % len(bridges)])
        arguments = {parameter: mark}
        asked = talk.say(f"{question_of(mark)}\n!call read* {json.dumps(arguments)}\n{ANSWER}")
        answer = talk.give(result_of(mark), bridge=bridges[(number + 1) % len(bridges)])
        (call,) = asked.calls
        history.add(Round(mark, call, ("read", arguments), answer.text))
