"""A method that a setting names works where it is possible. Elsewhere the error lists the possible ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.service import Service
from tests.real.talk import OSLO, WEATHER, Talk, ask_weather, quote, result
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

STUBS = ("native", "approval", "rewrite", "relay", "message")


@pytest.fixture(scope="session")
def forced(world: World) -> Iterator[Service]:
    named = [f"forced-{method}-{agent_type}={method}" for method in STUBS for agent_type in TYPES]
    with world.start_bridge(BRIDGE_METHOD=", ".join(["auto", *named]), WEB_CONCURRENCY="1") as bridge:
        yield bridge


TYPES = ("memgpt_agent", "memgpt_v2_agent", "letta_v1_agent")


def possible(world: World, agent_type: str) -> set[str]:
    """The methods that can work, written here independently of what the bridge reads from a server."""
    v3 = agent_type == "letta_v1_agent" and world.at_least("0.14.0")
    found = {"message"}
    if v3:
        found |= {"native", "approval"} if world.at_least("0.16.2") else {"approval"}
    if not world.at_least("0.16.7"):
        found.add("rewrite")
    if world.at_least("0.11.7") and agent_type != "letta_v1_agent":
        found.add("relay")
    return found


@pytest.mark.parametrize("method", STUBS)
def test_a_named_method_is_used_or_refused(world: World, agent_type: str, forced: Service, method: str) -> None:
    world.model.clear()
    agent = world.agent(agent_type, name=f"forced-{method}-{agent_type}")
    try:
        if method in possible(world, agent_type):
            works(agent, forced, method)
        else:
            reply = agent.ask(ask_weather(), tools=[WEATHER], bridge=forced)
            assert reply.status == 400
            assert reply.error is not None
            assert reply.error["code"] == "method_not_possible"
            assert "these do: " in reply.error["message"]
            assert agent.ask("bye").text == "You said: bye"
    finally:
        agent.delete()
    assert not world.model.refusals


@pytest.mark.two_servers
def test_a_late_result_is_quoted_beside_a_message_by_the_method_message(
    world: World, agent_type: str, forced: Service
) -> None:
    world.model.clear()
    agent = world.agent(agent_type, name=f"forced-message-{agent_type}")
    talk = Talk(agent, WEATHER, bridge=forced)
    (call_id,) = talk.say(ask_weather()).call_ids
    talk.say("Never mind.\n!say All right.")
    talk.refuses(result(call_id, "12 degrees"))
    well = {"role": "user", "content": "Well?\n!say Well."}
    assert talk.send(result(call_id, "12 degrees"), well).text == "Well."
    assert talk.story()[-3:] == ["assistant: All right.", quote("12 degrees"), "user: Well?"]
    agent.delete()
    assert not world.model.refusals


def works(agent: Agent, bridge: Service, method: str) -> None:
    talk = Talk(agent, WEATHER, bridge=bridge)
    reply = talk.say(ask_weather())
    assert (reply.method, reply.calls) == (method, [("weather", {"city": "Oslo"})])
    talk.give("12 degrees")
    story = talk.story()
    assert story[:2] == ["user: Weather?", OSLO]
    assert sum("12 degrees" in line for line in story) == 1
    assert agent.ask("bye", bridge=bridge).text == "You said: bye"
    assert agent.fingerprint() == talk.before
