"""More turns than a worker can run, and a Letta that does not answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from testbed.proxy import Hang
from testbed.service import Service
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.world import Agent, World

pytestmark = [
    pytest.mark.real,
    pytest.mark.one_type,
    pytest.mark.fault("Letta hangs under more turns than a worker can run"),
]

TURNS = scaled(6, 100)


@pytest.fixture
def bridge(world: World, tmp_path: Path) -> Iterator[Service]:
    settings = {"WEB_CONCURRENCY": "1", "BRIDGE_MAX_TURNS": str(TURNS)}
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), **settings) as service:
        yield service


@pytest.fixture
def crowd(world: World) -> Iterator[list[Agent]]:
    made = [world.agent("letta_v1_agent") for _ in range(TURNS)]
    yield made
    for agent in made:
        agent.delete()


def test_other_requests_are_served_and_the_turns_end_normally(
    world: World, bridge: Service, crowd: list[Agent], cases: Cases
) -> None:
    world.proxy.clear()
    hang = world.proxy.inject(Hang(), "POST", "/v1/agents/*/messages/stream")
    with ThreadPoolExecutor(TURNS) as pool:
        asked = [
            pool.submit(agent.ask, "Hello", stream=number % 2 == 0, bridge=bridge) for number, agent in enumerate(crowd)
        ]
        world.proxy.wait_for_calls(TURNS, "POST", "/v1/agents/*/messages/stream", ended=False, seconds=60)
        refused = crowd[0].ask("One too many", bridge=bridge)
        assert (refused.status, refused.error and refused.error["code"]) == (503, "too_many_turns")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        refusals = sorted(milliseconds(bridge, "POST", "/v1/chat/completions", 503) for _ in range(50))
        healthy = sorted(milliseconds(bridge, "GET", "/healthz", 200) for _ in range(200))
        assert requests.get(f"{bridge.url}/v1/models", timeout=20).status_code == 200
        hang.remove()
        assert {done.result().text for done in asked} == {"You said: Hello"}
    cases.figure("refused with 503, median and slowest of 50", f"{refusals[25]:.1f} ms, {refusals[-1]:.1f} ms")
    cases.figure("/healthz meanwhile, median and 99 %", f"{healthy[100]:.1f} ms, {healthy[197]:.1f} ms")
    cases.passed(TURNS)


def milliseconds(bridge: Service, method: str, path: str, status: int) -> float:
    """Measures one request."""
    body = {"model": "nobody", "messages": [{"role": "user", "content": "Hello"}]} if method == "POST" else None
    started = time.perf_counter()
    assert requests.request(method, bridge.url + path, json=body, timeout=20).status_code == status
    return (time.perf_counter() - started) * 1000


def test_a_letta_that_never_answers_ends_in_a_timeout(world: World, agent: Agent, tmp_path: Path, cases: Cases) -> None:
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), BRIDGE_TURN_TIMEOUT="1") as bridge:
        for stream in (False, True):
            with world.proxy.inject(Hang(answered=True), "POST", "/v1/agents/*/messages/stream"):
                late = agent.ask("Hello?", stream=stream, bridge=bridge)
            assert (late.status, late.error and late.error["code"]) == (504, "letta_timeout")
            assert agent.ask("Hello?", stream=stream, bridge=bridge).text == "You said: Hello?"
            cases.passed()
    assert sum("Hello?" in line for line in agent.story() if line.startswith("user")) == 2
