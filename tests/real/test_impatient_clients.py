"""Clients whose timeout is shorter than the model's time, and that send the same request again, as SDKs do."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import requests

from tests.real.talk import WEATHER, Talk, calling, echo, story_of
from tests.real.world import Agent, Reply, World
from tests.services import asking

pytestmark = [pytest.mark.real, pytest.mark.fault("clients that hang up")]

# Seconds. The tries in vain are about five.
TIMEOUT = 1.0
PAUSE = 0.5
MODEL = 6


def ask_impatiently(agent: Agent, **fields: Any) -> tuple[Reply, int]:
    """Asks until the answer comes in time. Returns it and the number of the tries in vain."""
    in_vain = 0
    while True:
        try:
            return agent.ask(timeout=TIMEOUT, **fields), in_vain
        except (requests.Timeout, requests.ConnectionError):
            in_vain += 1
            assert in_vain < 40
            time.sleep(PAUSE)


def times_in_history(world: World, agent: Agent, words: str) -> int:
    """Counts the messages of the agent's history, as Letta has it, that have these words from the user."""
    rows = world.letta("GET", f"/v1/agents/{agent.id}/messages", limit=100)
    return sum(row["message_type"] == "user_message" and words in json.dumps(row["content"]) for row in rows)


@pytest.mark.one_server
def test_an_impatient_client_gets_its_answer_and_the_agent_hears_it_once(
    world: World, agent: Agent, stream: bool
) -> None:
    agent.ask("Hello")
    world.proxy.clear()
    text = f"Take your time.\n!delay {MODEL}\n!say Here it is."
    reply, in_vain = ask_impatiently(agent, text=text, stream=stream)
    assert reply.text == "Here it is."
    assert in_vain >= 2
    assert len(world.model.requests(containing="Take your time.")) == 1
    assert times_in_history(world, agent, "Take your time.") == 1
    assert world.proxy.calls("POST", "/v1/agents/*/messages/cancel") == []
    agent.ask("Next")
    assert sum("Take your time." in line for line in agent.story()) == 1


@pytest.mark.one_server
def test_an_impatient_client_gets_the_agents_call_and_the_agent_its_result(
    world: World, agent: Agent, stream: bool
) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    talk.say("Hello")
    asked = {"role": "user", "content": f"Weather?\n!delay {MODEL}\n{calling(city='Oslo')}\n!next\n!answer"}
    reply, in_vain = ask_impatiently(agent, messages=[*talk.messages, asked], tools=[WEATHER], stream=stream)
    assert in_vain >= 2
    assert reply.calls == [("weather", {"city": "Oslo"})]
    talk.messages += [asked, echo(reply)]
    assert talk.give("12 degrees").text == "12 degrees"
    story = story_of(agent, [WEATHER])
    assert [line for line in story if "Weather?" in line or "weather" in line] == [
        "user: Weather?",
        'call weather {"city": "Oslo"}',
        "result of weather: 12 degrees",
    ]


@pytest.mark.two_servers
def test_a_new_message_of_the_conversation_ends_a_run_without_a_client_where_letta_can_do_that(
    world: World, agent: Agent
) -> None:
    """Letta ends a cancelled run when its model has answered."""
    talk = Talk(agent)
    talk.say("Hello")
    world.proxy.clear()
    asked = {"role": "user", "content": f"Ask me.\n!delay {MODEL}\n!say too late"}
    with asking(world.bridge, {"model": agent.name, "messages": [*talk.messages, asked]}):
        world.model.wait_for_requests(1, containing="too late")
    began = time.time()
    assert talk.send(asked, {"role": "user", "content": "Never mind.\n!say All right."}).text == "All right."
    assert time.time() - began < MODEL + 8
    cancels = world.proxy.calls("POST", "/v1/agents/*/messages/cancel")
    assert len(cancels) == (1 if world.at_least("0.14.0") else 0)
    assert all(call.started - began < 2.5 for call in cancels)
