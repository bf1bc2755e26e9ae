"""Workers that are killed or stopped while turns run."""

from __future__ import annotations

import os
import random
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from testbed.redis import Redis
from testbed.service import Service
from tests.faults.client import PersistentTalk, persist
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import OSLO, WEATHER, ask_weather
from tests.real.world import Agent, Api, Reply, World

pytestmark = [pytest.mark.real, pytest.mark.strict, pytest.mark.one_type]

RESULT = "result of weather: 12 degrees"
APIS: tuple[Api, ...] = ("chat_completions", "responses", "letta")


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.timeout(1800)
def test_a_tool_turn_survives_the_death_of_any_worker(
    world: World, agent_type: str, tmp_path: Path, cases: Cases
) -> None:
    """One of two workers is killed. The other one may get the repeated request."""
    dice = random.Random(7)
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path)) as bridge:
        for number in range(scaled(3, 40)):
            world.model.clear()
            agent = replace(world.agent(agent_type), api=APIS[number % len(APIS)])
            talk = PersistentTalk(agent, WEATHER, stream=number % 2 == 0, bridge=bridge)
            killer = threading.Timer(dice.uniform(0.02, 0.6), kill_one, (bridge, dice))
            killer.start()
            assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})], number
            assert talk.give("12 degrees").text == "12 degrees", number
            killer.join()
            assert persist(lambda agent=agent: agent.ask("bye", bridge=bridge)).text == "You said: bye"  # type: ignore[misc]
            story = [line for line in talk.story() if line.split(":")[0] in ("user", "assistant") or "weather" in line]
            assert story == ["user: Weather?", OSLO, RESULT, "assistant: 12 degrees", "user: bye"], number
            assert agent.fingerprint() == talk.before, number
            agent.delete()
            cases.passed()


def kill_all(bridge: Service) -> None:
    for worker in bridge.workers:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def kill_one(bridge: Service, dice: random.Random) -> None:
    with suppress(ProcessLookupError, IndexError):
        os.kill(dice.choice(bridge.workers), signal.SIGKILL)


@pytest.mark.fault("the holder of an agent is stopped for longer than its lease")
def test_a_worker_that_was_stopped_writes_nothing_afterwards(
    world: World, agent_type: str, tmp_path: Path, cases: Cases
) -> None:
    """The other bridge passes the call on. The first one changes nothing when it runs again."""
    agent = world.agent(agent_type)
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        url = stack.enter_context(Redis()).url
        stopped, other = (
            stack.enter_context(
                world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path / name), REDIS_URL=url, WEB_CONCURRENCY="1")
            )
            for name in ("stopped", "other")
        )
        text = ask_weather().replace("\n", "\n!delay 1\n", 1)
        world.proxy.clear()
        first = pool.submit(ask_in_vain, agent, text, stopped)
        world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/stream", ended=False)
        (holder,) = stopped.workers
        os.kill(holder, signal.SIGSTOP)
        talk = PersistentTalk(agent, WEATHER, stream=True, bridge=other)
        assert talk.say(text).calls == [("weather", {"city": "Oslo"})]
        before = len(world.proxy.calls("PATCH")) + len(world.proxy.calls("POST"))
        os.kill(holder, signal.SIGCONT)
        first.result()
        assert len(world.proxy.calls("PATCH")) + len(world.proxy.calls("POST")) == before
        assert talk.give("12 degrees").text == "12 degrees"
        assert agent.ask("bye", bridge=other).text == "You said: bye"
        story = [line for line in talk.story() if line.split(":")[0] in ("user", "assistant") or "weather" in line]
        assert story == ["user: Weather?", OSLO, RESULT, "assistant: 12 degrees", "user: bye"]
    agent.delete()
    cases.passed()


def ask_in_vain(agent: Agent, text: str, bridge: Service) -> Reply | None:
    with suppress(requests.RequestException):
        return agent.ask(text, tools=[WEATHER], stream=True, bridge=bridge)
    return None
