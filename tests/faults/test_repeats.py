"""The same request again: at once, later, after a hang-up, through another worker, another bridge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import requests

from testbed.redis import Redis
from testbed.service import Service
from tests.faults.client import persist
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import WEATHER, Talk, ask_weather, calling, result
from tests.real.world import Agent, Reply, World

pytestmark = [
    *(pytest.mark.real, pytest.mark.strict, pytest.mark.one_type),
    pytest.mark.fault("the same request again"),
]


@pytest.fixture(scope="module", params=["local", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, str]]]:
    """The settings of two bridges that share a folder, or only a Redis."""
    folders = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")]
    if request.param == "local":
        yield [{"BRIDGE_DATA_DIR": str(folders[0])}] * 2
        return
    with Redis() as redis:
        yield [{"BRIDGE_DATA_DIR": str(folder), "REDIS_URL": redis.url} for folder in folders]


@pytest.fixture(scope="module")
def bridges(world: World, shared: list[dict[str, str]]) -> Iterator[list[Service]]:
    with ExitStack() as stack:
        yield [stack.enter_context(world.start_bridge(**settings)) for settings in shared]


def at_once(*asks: Callable[[], Reply]) -> list[Reply]:
    """Returns the answers to requests that are sent at once, each again while it fails."""
    with ThreadPoolExecutor(len(asks)) as pool:
        return [done.result() for done in [pool.submit(persist, ask) for ask in asks]]


def heard(agent: Agent, words: str) -> int:
    """Counts how often the agent got these words."""
    return sum(words in line for line in agent.story() if line.startswith(("user", "result")))


def test_a_message_sent_many_times_at_once_is_heard_once(
    world: World, agent: Agent, bridges: list[Service], cases: Cases
) -> None:
    for number in range(scaled(1, 20)):
        text = f"Number {number}.\n!delay 0.5\n!say Heard {number}."
        replies = at_once(*(partial(agent.ask, text, stream=n % 2 == 0, bridge=bridges[n % 2]) for n in range(6)))
        assert {(reply.status, reply.text) for reply in replies} == {(200, f"Heard {number}.")}
        assert heard(agent, f"Number {number}.") == 1
        cases.passed(len(replies))


def test_a_result_sent_twice_at_once_and_again_later_is_heard_once(
    agent: Agent, bridges: list[Service], cases: Cases
) -> None:
    for number in range(scaled(1, 20)):
        talk = Talk(agent, WEATHER, bridge=bridges[0])
        (call_id,) = talk.say(ask_weather(f"Oslo {number}")).call_ids
        give = partial(agent.ask, messages=[*talk.messages, result(call_id, f"{number} degrees.")], tools=[WEATHER])
        replies = at_once(*(partial(give, bridge=bridge) for bridge in bridges * 2))
        replies += [give(bridge=bridge) for bridge in bridges]
        assert {(reply.status, reply.text) for reply in replies} == {(200, f"{number} degrees.")}
        agent.ask(f"Next {number}", bridge=bridges[0])
        assert heard(agent, f"{number} degrees.") == 1
        cases.passed(len(replies))


@pytest.mark.parametrize("stream", [False, True])
def test_a_message_is_heard_once_when_its_client_hangs_up_and_repeats_it(
    agent: Agent, bridges: list[Service], stream: bool, cases: Cases
) -> None:
    messages = [{"role": "user", "content": "Here I am.\n!delay 2\n!say Welcome."}]
    body = {"model": agent.name, "messages": messages, "stream": stream}
    with pytest.raises(requests.Timeout):
        requests.post(f"{bridges[0].url}/v1/chat/completions", json=body, timeout=0.8)
    assert persist(lambda: agent.ask(messages=messages, stream=stream, bridge=bridges[1])).text == "Welcome."
    assert heard(agent, "Here I am.") == 1
    cases.passed()


def test_a_message_that_an_otid_names_is_heard_once(agent: Agent, bridges: list[Service], cases: Cases) -> None:
    """Letta's own programs send a message again with the same otid, also after its answer was delivered."""
    letta = replace(agent, api="letta")
    for number in range(scaled(1, 10)):
        text = f"Number {number}.\n!delay 0.5\n!say Heard {number}."
        ask = partial(letta.ask, text, tools=[WEATHER], otid=f"otid-{number}")
        replies = at_once(*(partial(ask, stream=n % 2 == 0, bridge=bridges[n % 2]) for n in range(4)))
        replies += [ask(bridge=bridge) for bridge in bridges]
        assert {(reply.status, reply.text) for reply in replies} == {(200, f"Heard {number}.")}
        assert heard(agent, f"Number {number}.") == 1
        assert letta.ask(text, tools=[WEATHER], otid=f"other-{number}", bridge=bridges[0]).text == f"Heard {number}."
        assert heard(agent, f"Number {number}.") == 2
        cases.passed(len(replies))


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_to_a_call_is_heard_once_when_its_client_hangs_up_and_repeats_it(
    agent: Agent, bridges: list[Service], stream: bool, cases: Cases
) -> None:
    talk = Talk(replace(agent, api="letta"), WEATHER, stream=stream, bridge=bridges[0])
    (call_id,) = talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!delay 2\n!say Cold.").call_ids
    give = partial(talk.agent.ask, messages=[*talk.messages, result(call_id, "12 degrees")], tools=[WEATHER])
    with pytest.raises(requests.Timeout):
        # The first byte of a stream is a ping, so that the whole reply has a time limit here.
        give(stream=False, bridge=bridges[0], timeout=0.8)
    assert persist(lambda: give(stream=stream, bridge=bridges[1])).text == "Cold."
    agent.ask("Next.", bridge=bridges[0])
    assert heard(agent, "12 degrees") == 1
    cases.passed()


def test_a_late_answer_is_delivered_when_the_client_asks_again(
    world: World, agent: Agent, shared: list[dict[str, str]], bridges: list[Service], cases: Cases
) -> None:
    text = "Take your time.\n!delay 3\n!say Done."
    with world.start_bridge(**shared[0], BRIDGE_REPLY_WAIT="1") as hasty:
        late = agent.ask(text, bridge=hasty)
        assert (late.status, late.error and late.error["code"]) == (504, "still_running")
        assert persist(lambda: agent.ask(text, bridge=bridges[1])).text == "Done."
    assert heard(agent, "Take your time.") == 1
    assert len(world.model.requests(containing="Take your time.")) == 1
    cases.passed()


def test_the_same_message_is_heard_again_after_its_answer_was_delivered(
    agent: Agent, bridges: list[Service], cases: Cases
) -> None:
    for number in range(4):
        reply = agent.ask("Again!", stream=number > 1, bridge=bridges[number % 2])
        assert (reply.status, reply.text) == (200, "You said: Again!")
    assert heard(agent, "Again!") == 4
    cases.passed(4)


def test_an_unanswered_call_delays_others_for_a_limited_time(
    world: World, agent: Agent, tmp_path: Path, cases: Cases
) -> None:
    settings = {"BRIDGE_DATA_DIR": str(tmp_path), "BRIDGE_TOOL_WAIT": "1"}
    with world.start_bridge(**settings) as bridge:
        assert Talk(agent, WEATHER, bridge=bridge).say(ask_weather()).calls
        asked = time.monotonic()
        assert agent.ask("Anybody there?\n!say Yes.", bridge=bridge).text == "Yes."
        assert time.monotonic() - asked > 0.5
    cases.passed()


def test_a_setting_refuses_others_until_the_call_is_answered(
    world: World, agent: Agent, tmp_path: Path, cases: Cases
) -> None:
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path), BRIDGE_TOOL_WAIT="refuse=30") as bridge:
        talk = Talk(agent, WEATHER, bridge=bridge)
        talk.say(ask_weather())
        refused = agent.ask("Anybody there?", bridge=bridge)
        assert (refused.status, refused.error and refused.error["code"]) == (409, "tool_result_pending")
        assert talk.give("12 degrees").text == "12 degrees"
        assert agent.ask("Anybody there?", bridge=bridge).text == "You said: Anybody there?"
    cases.passed()
