"""The service gets SIGTERM while turns run."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.service import STOP_SECONDS, Service
from testbed.versions import V1_AGENT, agent_types
from tests.background_request import BackgroundRequest
from tests.faults.client import PersistentTalk, persist
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import OSLO, WEATHER, ask_weather
from tests.real.world import Agent, World
from tests.sse_checker import Json, check_error, read_stream

pytestmark = [pytest.mark.real, pytest.mark.one_type]

FULL_ONLY = pytest.mark.full
PATIENCE = 120.0
RESULT = "result of weather: 12 degrees"
MESSAGES = "/v1/agents/*/messages/stream"
# The answer of a slow model: it lasts about as long as fifty agents need to begin.
WORDS = " ".join(f"word{number}" for number in range(40))


@pytest.fixture
def agents(world: World) -> Iterator[list[Agent]]:
    types = agent_types(world.version)
    kind = V1_AGENT if V1_AGENT in types else types[-1]
    made = [world.agent(kind) for _ in range(scaled(3, 50))]
    yield made
    for agent in made:
        agent.delete()


def asking(agent: Agent, text: str, *, stream: bool = True) -> Json:
    return {"model": agent.name, "messages": [{"role": "user", "content": text}], "stream": stream}


def slow_answer(agent: Agent) -> str:
    """Returns a script for an answer that lasts. Letta streams the words of letta_v1_agent only."""
    pause = f"!slow {scaled(5, 10) / 100}" if agent.type == V1_AGENT else "!delay 5"
    return f"{pause}\n!say {WORDS}"


def terminated(bridge: Service, *, everyone: bool = False, seconds: float = STOP_SECONDS) -> int | None:
    """Sends SIGTERM; returns the exit code. Heroku signals every process of a dyno, other platforms the first one."""
    for process in [*(bridge.workers if everyone else ()), bridge.pid]:
        os.kill(process, signal.SIGTERM)
    return bridge.wait(seconds)


@pytest.mark.fault("SIGTERM while streams are open")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "everyone", [pytest.param(False, id="the first process"), pytest.param(True, id="every process", marks=FULL_ONLY)]
)
def test_streams_that_end_within_the_drain_are_complete(
    world: World, agents: list[Agent], tmp_path: Path, cases: Cases, everyone: bool
) -> None:
    """A busy machine may need more than the default drain of twenty seconds."""
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), BRIDGE_DRAIN=str(PATIENCE)) as bridge:
        world.proxy.clear()
        readings = [BackgroundRequest(bridge.url, asking(agent, slow_answer(agent)), PATIENCE) for agent in agents]
        world.proxy.wait_for_calls(len(agents), "POST", MESSAGES, seconds=PATIENCE, ended=False)
        assert agents[0].type != V1_AGENT or all(reading.has_received(b"word") for reading in readings)
        still_open = [reading for reading in readings if reading.is_open]
        assert still_open
        assert terminated(bridge, everyone=everyone, seconds=PATIENCE) == 0
        for reading in readings:
            reading.wait_for_end()
    for reading in readings:
        assert read_stream(reading.body, include_usage=False).message["content"] == WORDS
    cases.passed(len(still_open))


@pytest.mark.fault("SIGTERM while a turn runs that outlasts the drain")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("stream", "begun"),
    [
        pytest.param(True, True, id="in a stream"),
        pytest.param(True, False, id="before a stream begins", marks=FULL_ONLY),
        pytest.param(False, False, id="in an unstreamed reply", marks=FULL_ONLY),
    ],
)
def test_a_turn_that_outlasts_the_drain_can_be_repeated(
    world: World, agent: Agent, tmp_path: Path, cases: Cases, stream: bool, begun: bool
) -> None:
    """A stream breaks off, because clients then repeat the request. Without a stream the status is 503."""
    text = f"Question.\n!delay {scaled(4, 35)}\n!say Answer."
    times = {"ping_interval": 0.2, "header_wait": 0.0 if begun else 25.0}
    drain = str(scaled(1, 20))
    with world.start_bridge(times, BRIDGE_DATA_DIR=str(tmp_path), BRIDGE_DRAIN=drain) as bridge:
        world.proxy.clear()
        reading = BackgroundRequest(bridge.url, asking(agent, text, stream=stream), PATIENCE)
        world.proxy.wait_for_calls(1, "POST", MESSAGES, ended=False)
        assert not begun or reading.has_received()
        assert terminated(bridge) == 0
        reading.wait_for_end()
        if begun:
            assert reading.broken
            assert b'finish_reason":"' not in reading.body
        else:
            assert reading.status == 503
            assert int(reading.headers["Retry-After"]) > 0
            error = check_error(json.loads(reading.body))
            assert error["code"] == "shutting_down"
            assert "Send the request again" in error["message"]
        bridge.stop()
        bridge.start()
        assert persist(lambda: agent.ask(text, stream=stream, bridge=bridge)).text == "Answer."
        talk = PersistentTalk(agent, WEATHER, stream=stream, bridge=bridge)
        assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
        assert talk.give("12 degrees").text == "12 degrees"
        story = [line for line in talk.story() if line.split(":")[0] in ("user", "assistant") or "weather" in line]
        assert story == ["user: Question.", "assistant: Answer.", "user: Weather?", OSLO, RESULT]
        assert agent.ask("bye", bridge=bridge).text == "You said: bye"
        assert agent.fingerprint() == talk.before
    cases.passed()
