"""Turns that are interrupted: the bridge is killed, Letta restarts, or another bridge gets the result.

Everything that is needed to go on is on the Letta server.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
import requests

from testbed.owned import OwnServer
from testbed.proxy import Before, Between, DropResponse
from testbed.service import Service
from testbed.versions import agent_types
from tests.faults.client import persist
from tests.real.talk import MEMORY_TOOL, NUDGE, OSLO, WEATHER, Talk, ask_weather, nudge, result, story_of, tool
from tests.real.test_structured_output import ANY_OBJECT, NO_VALUE, WORDS, correction, saying
from tests.real.test_structured_output import OSLO as JSON
from tests.real.world import Agent, Reply, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

RESULT = "result of weather: 12 degrees"


@pytest.fixture(scope="session")
def mortal(world: World) -> Iterator[Service]:
    """A bridge of one worker, which its master replaces when it is killed."""
    with world.start_bridge(WEB_CONCURRENCY="1") as bridge:
        yield bridge


@pytest.fixture(scope="session")
def stranger(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A second bridge, which shares only the Letta server with the first."""
    with world.start_bridge(BRIDGE_DATA_DIR=str(tmp_path_factory.mktemp("stranger"))) as bridge:
        yield bridge


MESSAGE = "/v1/agents/*/messages/stream"
TURN = pytest.mark.parametrize("turn", [0, 1], ids=["calling", "answering"])


@pytest.mark.fault("a worker is killed at its n-th call, every n")
@TURN
@pytest.mark.one_server
def test_a_turn_goes_on_after_its_worker_was_killed_while_the_agent_ran(
    agent: Agent, mortal: Service, turn: int
) -> None:
    assert killed_at(agent, mortal, turn, 1, MESSAGE)


@pytest.mark.fault("a worker is killed at its n-th call, every n")
@pytest.mark.full
@TURN
def test_a_turn_goes_on_after_its_worker_was_killed_at_any_call(
    world: World, agent_type: str, mortal: Service, turn: int
) -> None:
    for nth in itertools.count(1):
        world.model.clear()
        agent = world.agent(agent_type)
        struck = killed_at(agent, mortal, turn, nth)
        assert not world.model.refusals, (turn, nth)
        agent.delete()
        if not struck:
            assert nth > 2, "a turn takes more calls than that"
            return


def killed_at(agent: Agent, bridge: Service, turn: int, nth: int, path: str = "**") -> bool:
    """A client that repeats each request until it is answered gets its call, gives its result, and gets the answer.

    Returns whether the turn made so many calls to that path.
    """
    talk = Talk(agent, WEATHER, stream=True, bridge=bridge)
    struck = False
    asked = {"role": "user", "content": ask_weather()}
    if turn == 0:
        struck = broken_off(talk, nth, path, bridge, lambda: talk.send(asked))
    if not talk.messages:
        reply = insisting(talk, asked)
        assert reply.calls == [("weather", {"city": "Oslo"})], (turn, nth, reply.text, talk.story())
    returned = result(talk.messages[-1]["tool_calls"][0]["id"], "12 degrees")
    if turn == 1:
        struck = broken_off(talk, nth, path, bridge, lambda: talk.send(returned))
    if "tool_calls" in talk.messages[-1]:
        assert insisting(talk, returned).text == "12 degrees", (turn, nth)
    reply = agent.ask("bye", bridge=bridge)
    assert reply.text == "You said: bye", (turn, nth)
    story = talk.story()
    assert story.count(RESULT) == 1, (turn, nth, story)
    assert [line for line in story if line.startswith("system")] == [], (turn, nth, story)
    assert story[-5:] == ["user: Weather?", OSLO, RESULT, "assistant: 12 degrees", "user: bye"], (turn, nth, story)
    assert agent.fingerprint() == talk.before, (turn, nth)
    return struck


@pytest.mark.fault("a worker is killed at its n-th call, every n")
@pytest.mark.parametrize("moment", [Before, Between], ids=["before the second run", "in the second run"])
@pytest.mark.two_servers
def test_an_agent_that_is_asked_for_another_form_is_asked_once_although_its_worker_was_killed(
    agent: Agent, mortal: Service, moment: type[Before | Between]
) -> None:
    talk = Talk(agent, WEATHER, stream=True, bridge=mortal, response_format=ANY_OBJECT)
    asked = {"role": "user", "content": saying(WORDS, JSON)}
    kill = moment(lambda _: kill_workers(mortal))
    with agent.world.proxy.inject(kill, path=MESSAGE, nth=2, times=1) as rule, suppress(requests.RequestException):
        talk.send(asked)
    assert rule.applied == 1
    agent.world.wait_until_letta_writes()
    assert insisting(talk, asked).text == JSON
    talk.ends_with("user: Weather?", f"assistant: {WORDS}", correction(NO_VALUE), f"assistant: {JSON}")


@pytest.mark.fault("a worker is killed at its n-th call, every n")
@pytest.mark.two_servers
def test_words_in_the_turn_of_a_killed_worker_are_heard_once_if_new_ones_come_with_them(
    agent: Agent, mortal: Service
) -> None:
    talk = Talk(agent, bridge=mortal)
    asked = {"role": "user", "content": "One thing.\n!say Here."}
    kill = Between(lambda _: kill_workers(mortal))
    with agent.world.proxy.inject(kill, path=MESSAGE, nth=1, times=1), suppress(requests.RequestException):
        talk.send(asked)
    agent.world.wait_until_letta_writes()
    reply = persist(lambda: talk.send(asked, {"role": "user", "content": "Another.\n!say Yes."}))
    assert reply.text == "Yes."
    assert [line for line in talk.story() if line.startswith("user: ")] == ["user: One thing.", "user: Another."]


@pytest.mark.two_servers
def test_a_long_turn_whose_answer_was_lost_is_not_run_again(world: World, agent_type: str) -> None:
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    note = f'!call {MEMORY_TOOL} {{"label": "human", "content": "tea"}}'
    text = "Remember.\n" + "\n!next\n".join([note] * 8) + "\n!next\n!say Noted."
    with world.proxy.inject(DropResponse(), "POST", MESSAGE, nth=1):
        assert agent.ask(text).error is not None
    asked = len(world.model.requests())
    assert persist(lambda: agent.ask(text)).text == "Noted."
    assert len(world.model.requests()) == asked
    agent.delete()


def insisting(talk: Talk, message: Json) -> Reply:
    """Repeats a request that gets 409, as OpenAI's packages do: Letta may still run the turn of the killed worker."""
    for _ in range(5):
        reply = talk.send(message)
        if reply.error is None:
            return reply
        assert reply.error["code"] == "conflict", reply.error
    raise AssertionError(reply.error)


def broken_off(talk: Talk, nth: int, path: str, bridge: Service, step: Callable[[], object]) -> bool:
    """Kills the bridge at its n-th call; the last call may follow the answer to the client."""
    kill = Between(lambda _: kill_workers(bridge))
    with talk.agent.world.proxy.inject(kill, path=path, nth=nth, times=1) as rule, suppress(requests.RequestException):
        step()
    if rule.applied:
        talk.agent.world.wait_until_letta_writes()
    return rule.applied == 1


def kill_workers(bridge: Service) -> None:
    for worker in bridge.workers:
        os.kill(worker, signal.SIGKILL)


@pytest.mark.two_servers
def test_a_message_that_a_failed_run_left_out_of_the_context_is_sent_again(world: World, agent_type: str) -> None:
    """The model fails after a tool of the agent has run. Some servers store that step outside of the context."""
    world.model.clear()
    agent = world.agent(agent_type, tools=["core_memory_append"])
    note = '!call core_memory_append {"label": "human", "content": "tea"}'
    for _ in range(2):
        reply = agent.ask(f"Remember.\n{note}\n!next\n!status 400 broken")
        assert reply.error is not None
        assert story_of(agent, ()).count("user: Remember.") == 1
    assert agent.ask("!say bye").text == "bye"
    assert NUDGE not in story_of(agent, ())
    agent.delete()


@pytest.mark.two_servers
@pytest.mark.fault("Letta restarts while a call is open")
def test_the_result_of_a_call_may_come_through_another_bridge(agent: Agent, stranger: Service) -> None:
    talk = Talk(agent, WEATHER, stream=True)
    so_far: list[str] = []
    for asking, giving in ((None, stranger), (stranger, None)):
        assert talk.say(ask_weather(), bridge=asking).calls == [("weather", {"city": "Oslo"})]
        assert talk.give("12 degrees", bridge=giving).text == "12 degrees"
        so_far += ["user: Weather?", OSLO, RESULT]
        assert talk.story() == [*so_far, *nudge(agent)]
        so_far.append("assistant: 12 degrees")
    talk.ends_with(*so_far)


@pytest.mark.two_servers
@pytest.mark.fault("two clients with different tools on one agent: rounds")
def test_two_bridges_offer_different_tools_in_turn(agent: Agent, stranger: Service) -> None:
    theirs = tool("weather", "Another tool of that name.", place={"type": "string"})
    before = agent.fingerprint()
    for _ in range(2):
        ours = agent.ask('!call weather* {"city": "Oslo"}', tools=[WEATHER])
        assert ours.calls == [("weather", {"city": "Oslo"})]
        others = agent.ask('!call weather* {"place": "Rome"}', tools=[theirs], bridge=stranger)
        assert others.calls == [("weather", {"place": "Rome"})]
    assert agent.ask("bye\n!say bye").text == "bye"
    assert agent.fingerprint() == before


@pytest.mark.fault("Letta restarts while a call is open")
@pytest.mark.one_server
def test_a_result_arrives_after_letta_was_restarted(world: World) -> None:
    if not isinstance(world.server, OwnServer):
        pytest.fail("a server that is `up` can't be restarted by a test: `python -m testbed down` first")
    talks = []
    for agent_type in agent_types(world.version):
        talk = Talk(world.agent(agent_type), WEATHER, stream=True)
        talk.say(ask_weather())
        talks.append(talk)
    world.server.restart()
    for talk in talks:
        assert talk.give("12 degrees").text == "12 degrees"
        talk.ends_with("user: Weather?", OSLO, RESULT, "assistant: 12 degrees")
        talk.agent.delete()
