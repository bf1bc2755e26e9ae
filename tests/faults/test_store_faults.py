"""Redis is missing, lost, slow, back again, or wants another password."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from redis import Redis as Client

from testbed.redis import Redis
from testbed.service import Service
from tests.faults.client import persist
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.world import Agent, Reply, World
from tests.waiting import SOON

pytestmark = [pytest.mark.real, pytest.mark.one_type, pytest.mark.fault("Redis down, lost, slow, back, refusing")]

PASSWORD = "right-password"


@pytest.fixture
def redis() -> Iterator[Redis]:
    with Redis(password=PASSWORD) as server:
        yield server


@pytest.fixture
def bridge(world: World, redis: Redis, tmp_path: Path) -> Iterator[Service]:
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), REDIS_URL=redis.url) as service:
        yield service


def status(bridge: Service, path: str) -> int:
    return requests.get(f"{bridge.url}/{path}", timeout=SOON).status_code


def readiness_becomes(bridge: Service, wanted: int) -> None:
    """Waits for several such answers in a row: each of two workers keeps its result for a few seconds."""
    until, found = time.monotonic() + SOON, 0
    while found < 4:
        assert time.monotonic() < until, f"/readyz does not become {wanted}"
        found = found + 1 if status(bridge, "readyz") == wanted else 0
        time.sleep(0.1)


def refuses(agent: Agent, bridge: Service) -> None:
    refused = agent.ask("Nobody hears this", bridge=bridge)
    assert (refused.status, refused.error and refused.error["code"]) == (503, "store_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    readiness_becomes(bridge, 503)
    assert status(bridge, "healthz") == 200


def serves(agent: Agent, bridge: Service) -> None:
    assert agent.ask("Hello", bridge=bridge).text == "You said: Hello"
    readiness_becomes(bridge, 200)
    assert not any("Nobody hears this" in line for line in agent.story())


def test_turns_are_refused_while_redis_is_down(agent: Agent, redis: Redis, bridge: Service, cases: Cases) -> None:
    serves(agent, bridge)
    for _ in range(scaled(1, 2)):
        redis.stop()
        refuses(agent, bridge)
        redis.start()
        serves(agent, bridge)
        cases.passed()


@pytest.mark.full
def test_a_bridge_that_starts_before_its_redis_serves_once_redis_is_up(
    world: World, agent: Agent, redis: Redis, tmp_path: Path, cases: Cases
) -> None:
    redis.stop()
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), REDIS_URL=redis.url) as bridge:
        refuses(agent, bridge)
        redis.start()
        serves(agent, bridge)
    cases.passed()


@pytest.mark.full
def test_the_bridge_does_not_wait_long_for_a_redis_that_hangs(
    agent: Agent, redis: Redis, bridge: Service, cases: Cases
) -> None:
    serves(agent, bridge)
    redis.pause()
    refuses(agent, bridge)
    redis.resume()
    serves(agent, bridge)
    cases.passed()


def test_a_wrong_password_is_reported_and_not_logged(
    world: World, agent: Agent, redis: Redis, tmp_path: Path, cases: Cases
) -> None:
    wrong = redis.url.replace(PASSWORD, "wrong-password")
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), REDIS_URL=wrong) as bridge:
        refuses(agent, bridge)
    assert "wrong-password" not in world.log.read_text()
    cases.passed()


@pytest.mark.strict
@pytest.mark.parametrize("comes_back", ["at once, empty", pytest.param("later", marks=pytest.mark.full)])
def test_nothing_is_lost_or_doubled_when_redis_is_lost_during_a_turn(
    world: World, agent: Agent, redis: Redis, bridge: Service, comes_back: str, cases: Cases
) -> None:
    world.proxy.clear()
    replies: list[Reply] = []
    text = "Remember this.\n!delay 2\n!say I do."

    def ask() -> None:
        replies.append(persist(lambda: agent.ask(text, stream=True, bridge=bridge)))

    asking = threading.Thread(target=ask)
    asking.start()
    world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/stream", ended=False)
    redis.stop()
    if comes_back == "later":
        time.sleep(3)
    redis.start()
    asking.join()
    assert [reply.text for reply in replies] == ["I do."]
    serves(agent, bridge)
    assert sum("Remember this." in line for line in agent.story()) == 1
    cases.passed()


@pytest.mark.strict
def test_a_repeat_is_not_heard_again_when_redis_is_emptied_during_a_turn(
    world: World, agent: Agent, redis: Redis, bridge: Service, cases: Cases
) -> None:
    world.proxy.clear()
    replies: list[Reply] = []
    text = "Remember this.\n!delay 4\n!say I do."

    def ask() -> None:
        replies.append(persist(lambda: agent.ask(text, stream=True, bridge=bridge)))

    asking = [threading.Thread(target=ask) for _ in range(3)]
    asking[0].start()
    world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/stream", ended=False)
    with Client.from_url(redis.url) as client:
        client.flushall()
    for repeat in asking[1:]:
        repeat.start()
    for thread in asking:
        thread.join()
    assert [reply.text for reply in replies] == ["I do."] * 3
    serves(agent, bridge)
    assert sum("Remember this." in line for line in agent.story()) == 1
    cases.passed()
