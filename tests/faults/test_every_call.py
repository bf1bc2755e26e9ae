"""The n-th call to Letta fails, for every n, in a turn that calls a tool and in the one that brings its result."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import requests

from testbed.proxy import Cut, DropResponse, Fault, Refuse, Reset, Status
from tests.faults.client import PersistentTalk, persist
from tests.faults.scale import FULL
from tests.faults.table import Cases
from tests.real.talk import OSLO, WEATHER, ask_weather
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

FAULTS: dict[str, Fault] = {
    "closed without an answer": Refuse(),
    "done, and its answer lost": DropResponse(),
    "reset": Reset(),
    "status 500": Status(500),
    "done, and answered with 502": Status(502, answered=True),
    "cut in mid-answer": Cut(after_bytes=60),
}
NAMES = list(FAULTS)
RESULT = "result of weather: 12 degrees"
MARKED = pytest.mark.fault("the n-th call to Letta fails, every n")


@MARKED
@pytest.mark.parametrize("first", range(len(FAULTS)) if FULL else [0], ids=lambda first: NAMES[first])
def test_a_tool_turn_survives_a_failure_of_any_call(world: World, agent_type: str, first: int, cases: Cases) -> None:
    """In the short form the faults take turns; in full each strikes every call."""
    for nth in itertools.count(1):
        fault = FAULTS[NAMES[first if FULL else nth % len(NAMES)]]
        if not survives(world, agent_type, nth, fault):
            assert nth > 6, "two turns take more calls than that"
            return
        cases.passed()


def survives(world: World, agent_type: str, nth: int, fault: Fault) -> bool:
    """Whether there was an n-th call to fail at all."""
    world.model.clear()
    agent = world.agent(agent_type)
    talk = PersistentTalk(agent, WEATHER, stream=nth % 2 == 0)
    with world.proxy.inject(fault, nth=nth) as rule:
        assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})], (nth, fault)
        assert talk.give("12 degrees").text == "12 degrees", (nth, fault)
    in_order(agent, talk, (nth, fault))
    assert not world.model.refusals, (nth, fault)
    agent.delete()
    return rule.struck == 1


def in_order(agent: Agent, talk: PersistentTalk, where: object) -> None:
    """The agent was told each thing once, has nothing of ours left, and takes the next message."""
    reply = agent.ask("bye")
    assert reply.text == "You said: bye", (where, reply.error)
    story = [line for line in talk.story() if line.split(":")[0] in ("user", "assistant") or "weather" in line]
    assert story[-5:] == ["user: Weather?", OSLO, RESULT, "assistant: 12 degrees", "user: bye"], (where, story)
    assert len(story) == 5, (where, story)
    assert agent.fingerprint() == talk.before, where


@MARKED
def test_a_plain_turn_survives_a_failure_of_any_call(world: World, agent_type: str, cases: Cases) -> None:
    tried: list[tuple[int, str]] = [(nth, name) for nth in range(1, 5) for name in (NAMES if FULL else [NAMES[nth]])]
    for nth, name in tried:
        world.model.clear()
        agent = world.agent(agent_type)
        talk = PersistentTalk(agent, stream=nth % 2 == 0)
        with world.proxy.inject(FAULTS[name], nth=nth):
            assert talk.say("Hello").text == "You said: Hello", (nth, name)
        talk.ends_with("user: Hello", "assistant: You said: Hello")
        assert not world.model.refusals, (nth, name)
        agent.delete()
        cases.passed()


STATUSES: dict[int, Callable[[int], bool]] = {
    400: lambda told: told == 502,
    401: lambda told: told == 502,
    403: lambda told: told == 502,
    404: lambda told: told == 404,
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
@pytest.mark.parametrize("stream", [False, True] if FULL else [True])
def test_a_refusal_has_its_status_and_does_no_harm(world: World, agent: Agent, stream: bool, cases: Cases) -> None:
    for status, is_right in STATUSES.items():
        with world.proxy.inject(Status(status, "canary-words"), "POST", "/v1/agents/*/messages/stream"):
            reply = agent.ask(f"Hello {status}", stream=stream)
        assert is_right(reply.status), (status, reply.status)
        assert "canary-words" not in str(reply.error)
        assert agent.ask(f"Hello {status}", stream=stream).text == f"You said: Hello {status}"
        cases.passed()


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("stream", [False, True])
def test_a_stream_that_breaks_never_looks_whole_and_is_made_up_for(
    world: World, agent: Agent, stream: bool, cases: Cases
) -> None:
    """Within the head of an event, within a character of several bytes, between events, before the end."""
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
        if whole:  # then the break came after the server had said how the run ended
            assert rule.struck == 0 or place > 500, (place, raw)
        else:
            reply = persist(lambda body=body: agent.ask(messages=body["messages"], stream=stream))  # type: ignore[misc]
            assert reply.text == text, place
        agent.ask("!say next")
        assert sum(text in line for line in agent.story() if line.startswith("user")) == 1, place
        cases.passed()
    assert agent.fingerprint() == before


def raw_reply(world: World, body: dict[str, object]) -> bytes | None:
    """What came of a reply; None when it broke off."""
    try:
        return requests.post(f"{world.bridge.url}/v1/chat/completions", json=body, timeout=60).content
    except requests.RequestException:
        return None
