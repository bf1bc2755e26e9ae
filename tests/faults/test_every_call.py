"""The n-th call to Letta fails, for every n and scenario. A message fails with each status and breaks at each place."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
import requests

from testbed.proxy import Cut, DropResponse, Fault, Refuse, Reset, Status
from tests.faults.client import PersistentTalk, persist
from tests.faults.scale import FULL
from tests.faults.scenarios import NEWS, SCENARIOS, Scenario
from tests.faults.table import Cases
from tests.real.talk import CLOCK, MEMORY_TOOL, NUDGE, OSLO, WEATHER, Talk, ask_weather, story_of
from tests.real.world import Agent, Api, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

FAULTS: dict[str, Fault] = {
    "closed without an answer": Refuse(),
    "done, and its answer lost": DropResponse(),
    "reset": Reset(),
    "status 500": Status(500),
    "done, and answered with 502": Status(502, answered=True),
    "cut in mid-answer": Cut(after_bytes=60),
}
NAMES = list(FAULTS)


PLAIN = "call_and_result"
# Scenarios, and the fault with which each begins. In the short form, every third call of the plain one fails.
PLAYED = [(name, first) for name in SCENARIOS for first in (range(len(NAMES)) if name == PLAIN else (0,))]
PLAYED, STEP = (PLAYED, 1) if FULL else ([(PLAIN, 0)], 3)


@pytest.mark.fault("the n-th call to Letta fails, every n")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("scenario", "first"), PLAYED)
def test_a_failure_of_any_call_changes_nothing(
    world: World, agent_type: str, scenario: str, first: int, cases: Cases
) -> None:
    """The faults take turns. In full, each is tried at every call of a plain call and its result."""
    fail_each_call(Stage(world, agent_type, SCENARIOS[scenario]), scenario, first, cases)


@pytest.mark.fault("the n-th call to Letta fails, every n")
@pytest.mark.one_type
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("api", "first"), [("responses", 1), ("letta", 2)])
def test_a_failure_of_any_call_changes_nothing_for_other_apis(
    world: World, agent_type: str, api: Api, first: int, cases: Cases
) -> None:
    fail_each_call(Stage(world, agent_type, SCENARIOS[PLAIN], api), PLAIN, first, cases)


def fail_each_call(stage: Stage, scenario: str, first: int, cases: Cases) -> None:
    """Plays the scenario with a failure at each call in turn, and expects the same as without one."""
    undisturbed = {stream: stage.play(stream) for stream in (False, True)}
    assert scenario != PLAIN or all(played == AS_EXPECTED for played in undisturbed.values())
    for turn in itertools.count():
        nth, name, stream = 1 + turn * STEP, NAMES[(first + turn) % len(NAMES)], turn % 2 == 0
        with stage.world.proxy.inject(FAULTS[name], nth=nth) as rule:
            played = stage.play(stream)
        if not rule.applied:
            assert nth > (6 if scenario == PLAIN else 2), "it takes more calls than that"
            return
        assert played == undisturbed[stream], (name, nth)
        cases.passed()


@dataclass(frozen=True, slots=True)
class Played:
    """The outcome of a scenario: for the client, for the agent's model, and on the server."""

    replies: list[tuple[str, list[tuple[str, Any]], str | None]]
    story: list[str]
    blocks: Json


AS_EXPECTED = Played(
    [("", [("weather", {"city": "Oslo"})], "tool_calls"), ("12 degrees", [], "stop")],
    ["user: Weather?", OSLO, "result of weather: 12 degrees", "assistant: 12 degrees", "user: bye"],
    [("human", "Nothing known.")],
)


@dataclass(frozen=True, slots=True)
class Stage:
    world: World
    agent_type: str
    scenario: Scenario
    api: Api = "chat_completions"

    def play(self, stream: bool) -> Played:
        """Plays the scenario with a new agent, which must then answer a plain message. That is one of Chat Completions,
        as Letta itself answers those of its own API, which does not recognise a repeat.
        """
        self.world.model.clear()
        agent = replace(self.world.agent(self.agent_type, tools=[MEMORY_TOOL]), api=self.api)
        talk = PersistentTalk(agent, WEATHER, CLOCK, stream=stream)
        replies = [(reply.text, reply.calls, reply.finish_reason) for reply in self.scenario(talk)]
        chat = replace(agent, api="chat_completions")
        assert persist(lambda: chat.ask("bye")).text == "You said: bye"
        story = story_of(agent, [WEATHER, CLOCK, NEWS])
        assert not self.world.model.refusals
        left = agent.fingerprint()
        blocks = left.pop("blocks")  # the agent's own tool may have changed what is in them
        assert left == {name: was for name, was in talk.before.items() if name != "blocks"}
        agent.delete()
        return Played(replies, [line for line in story if line != NUDGE], blocks)


STATUSES: dict[int, Callable[[int], bool]] = {
    400: lambda told: told == 502,
    401: lambda told: told == 502,
    403: lambda told: told == 502,
    404: lambda told: told == 502,
    409: lambda told: told == 409,
    422: lambda told: told == 502,
    429: lambda told: told == 429,
    500: lambda told: told == 502,
    502: lambda told: told == 502,
    503: lambda told: told == 503,
    504: lambda told: told == 504,
    529: lambda told: told == 502,
}


@pytest.mark.fault("Letta answers a message with a status")
@pytest.mark.one_type
@pytest.mark.parametrize("stream", [False, True] if FULL else [True])
def test_a_refused_message_has_the_right_status_and_can_be_repeated(
    world: World, agent: Agent, stream: bool, cases: Cases
) -> None:
    for status, is_right in STATUSES.items():
        with world.proxy.inject(Status(status, "canary-words"), "POST", "/v1/agents/*/messages/stream"):
            reply = agent.ask(f"Hello {status}", stream=stream)
        assert is_right(reply.status), (status, reply.status)
        assert "canary-words" not in str(reply.error)
        assert agent.ask(f"Hello {status}", stream=stream).text == f"You said: Hello {status}"
        cases.passed()


@pytest.mark.fault("Letta answers a message with a status")
@pytest.mark.parametrize("stream", [False, True])
def test_a_run_that_letta_lost_is_answered_in_the_same_request(
    world: World, agent: Agent, stream: bool, cases: Cases
) -> None:
    lost = Status(404, '{"detail":"StepMetrics not found"}', answered=True)
    talk = Talk(agent, WEATHER, stream=stream)
    with world.proxy.inject(lost, "POST", "/v1/agents/*/messages/stream", nth=1) as rule:
        assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
        assert rule.applied
    with world.proxy.inject(lost, "POST", "/v1/agents/*/messages/stream", nth=1) as rule:
        assert talk.give("12 degrees").text == "12 degrees"
        assert rule.applied
    assert agent.ask("bye").text == "You said: bye"
    assert [line for line in talk.story() if line != NUDGE] == AS_EXPECTED.story
    cases.passed(2)


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.one_type
@pytest.mark.parametrize("stream", [False, True])
def test_a_broken_stream_never_looks_complete_and_can_be_repeated(
    world: World, agent: Agent, stream: bool, cases: Cases
) -> None:
    """Breaks within an event, within a character of several bytes, between events, and before the end."""
    before = agent.fingerprint()
    for place in range(0, 1500, 20 if FULL else 250):
        text = f"Place {place} ä\U0001f600."
        body = {
            "model": agent.name,
            "messages": [{"role": "user", "content": f"{text}\n!say {text}"}],
            "stream": stream,
        }
        with world.proxy.inject(Cut(after_bytes=place), "POST", "/v1/agents/*/messages/stream") as rule:
            raw = raw_reply(world, body)
        whole = raw is not None and (b"data: [DONE]" in raw or b'"chat.completion"' in raw)
        if whole:  # then the stream broke after the server had reported the end of the run
            assert rule.applied == 0 or place > 500, (place, raw)
        else:
            reply = persist(lambda body=body: agent.ask(messages=body["messages"], stream=stream))  # type: ignore[misc]
            assert reply.text == text, place
        agent.ask("!say next")
        assert sum(text in line for line in agent.story() if line.startswith("user")) == 1, place
        cases.passed()
    assert agent.fingerprint() == before


def raw_reply(world: World, body: dict[str, object]) -> bytes | None:
    """Returns the bytes of a reply, or None if it broke off."""
    try:
        return requests.post(f"{world.bridge.url}/v1/chat/completions", json=body, timeout=60).content
    except requests.RequestException:
        return None
