"""Calls that the client never answers, in time or at all, and agents that wait for somebody else."""

from __future__ import annotations

import pytest
import requests

from tests.real.talk import (
    CLOCK,
    MEMORY_TOOL,
    NUDGE,
    OSLO,
    WEATHER,
    Talk,
    ask_weather,
    calling,
    given_up,
    method_of,
    result,
    told,
)
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict]


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_a_user_who_goes_on_without_the_result_is_answered(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    talk.say(ask_weather())
    assert talk.say("Never mind.\n!say All right.").text == "All right."
    so_far = ["user: Weather?", *given_up(agent), "user: Never mind."]
    assert talk.story() == so_far
    talk.ends_with(*so_far, "assistant: All right.")


def test_a_new_transcript_is_answered_and_may_call_again(agent: Agent) -> None:
    Talk(agent, WEATHER).say(ask_weather())
    talk = Talk(agent, WEATHER)
    assert talk.say(ask_weather("Rome")).calls == [("weather", {"city": "Rome"})]
    assert talk.give("20 degrees").text == "20 degrees"
    rome = 'call weather {"city": "Rome"}'
    expected = ["user: Weather?", *given_up(agent), "user: Weather?", rome, "result of weather: 20 degrees"]
    assert [line for line in talk.story() if line != NUDGE] == expected


def test_a_client_with_other_tools_or_none_is_answered_meanwhile(agent: Agent) -> None:
    before = agent.fingerprint()
    Talk(agent, WEATHER).say(ask_weather())
    assert Talk(agent, CLOCK).say("Hello\n!say Hello").text == "Hello"
    Talk(agent, WEATHER).say(ask_weather())
    assert agent.ask("Title?\n!say A title").text == "A title"
    assert agent.fingerprint() == before
    called = given_up(agent)
    assert told(agent, [WEATHER]) == [
        *["user: Weather?", *called, "user: Hello", "assistant: Hello"],
        *["user: Weather?", *called, "user: Title?"],
    ]


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_a_result_that_comes_late_takes_its_place_or_is_refused(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    assert agent.ask("Title?\n!say A title").text == "A title"
    late = talk.send(result(call_id, "12 degrees"))
    if method_of(agent) == "rewrite":
        assert late.error is None
        expected = ["user: Weather?", OSLO, "result of weather: 12 degrees", "user: Title?", "assistant: A title"]
        nudge = [NUDGE] if agent.world.at_least("0.9.0") else []
        assert talk.story() == [*expected, *nudge]
        talk.ends_with(*expected, f"assistant: {late.text}")
    else:
        assert late.status == 400
        assert late.error is not None
        assert call_id in late.error["message"]
        assert (
            talk.send(result(call_id, "12 degrees"), {"role": "user", "content": "Well?\n!say Well."}).text == "Well."
        )
        called = ["user: Weather?", *given_up(agent), "user: Title?", "assistant: A title"]
        talk.ends_with(*called, "user: Well?", "assistant: Well.")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_a_call_that_was_given_up_before_its_result_came_is_not_answered_twice(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say(ask_weather())
    talk.say("Never mind.\n!say All right.")
    reply = talk.say(f"Weather again?\n{calling(city='Rome')}\n!next\n!answer")
    assert talk.give("20 degrees").text == "20 degrees"
    assert reply.calls == [("weather", {"city": "Rome"})]
    talk.ends_with(
        *["user: Weather?", *given_up(agent), "user: Never mind.", "assistant: All right."],
        *["user: Weather again?", 'call weather {"city": "Rome"}', "result of weather: 20 degrees"],
        "assistant: 20 degrees",
    )


GATE = {"type": "requires_approval", "tool_name": MEMORY_TOOL}


def test_an_agent_that_waits_for_its_owner_says_so_and_nobody_decides_for_him(
    world: World, agent_type: str, stream: bool
) -> None:
    world.model.clear()
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    gate = requests.patch(
        f"{world.server.base_url}/v1/agents/{agent.id}",
        json={"tool_rules": [*agent.state()["tool_rules"], GATE]},
        timeout=30,
    )
    if world.at_least("0.11.7"):
        waits_for_its_owner(agent, stream)
    else:
        assert gate.status_code == 422, "nothing can hold an agent of this server"
    assert not world.model.refusals
    agent.delete()


def waits_for_its_owner(agent: Agent, stream: bool) -> None:
    remember = f'Remember.\n!call {MEMORY_TOOL} {{"label": "human", "content": "tea"}}\n!next\n!say Noted.'
    first = agent.ask(remember, tools=[WEATHER], stream=stream)
    second = agent.ask("Hello?", tools=[WEATHER], stream=stream)
    for refused in (first, second):
        assert refused.error is not None
        assert MEMORY_TOOL in refused.error["message"]
        assert refused.error["code"] == "agent_waits_for_approval"
    assert second.status == 409
    pending = agent.world.letta("GET", f"/v1/agents/{agent.id}/messages", limit=5)[-1]
    assert pending["message_type"] == "approval_request_message"
    assert pending["id"] == agent.state()["message_ids"][-1]
    decision = {"type": "approval", "approve": True, "approval_request_id": pending["id"]}
    agent.world.letta("POST", f"/v1/agents/{agent.id}/messages", {"messages": [decision]})
    assert dict(agent.fingerprint()["blocks"])["human"] == "Nothing known.\ntea"
    assert agent.ask("Hello?\n!say Hello.", tools=[WEATHER], stream=stream).text == "Hello."


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.parametrize("deleted", [False, True], ids=["detached", "deleted"])
def test_an_agent_left_at_a_call_by_a_bridge_that_is_gone_is_freed(agent: Agent, deleted: bool) -> None:
    talk = Talk(agent, WEATHER)
    talk.say("Hello")
    agent.world.letta(
        "POST", f"/v1/agents/{agent.id}/messages", {"messages": [{"role": "user", "content": ask_weather()}]}
    )
    for tool in agent.state()["tools"]:
        if tool["name"].startswith("weather"):
            agent.world.letta("PATCH", f"/v1/agents/{agent.id}/tools/detach/{tool['id']}")
            if deleted:
                agent.world.letta("DELETE", f"/v1/tools/{tool['id']}")
    assert agent.ask("Still there?\n!say Yes.").text == "Yes."
    assert agent.ask("bye").text == "You said: bye"
    left = agent.fingerprint()
    if deleted:  # by hand: then nothing on the server tells that the rule for that name was ours
        left["rules"] = [rule for rule in left["rules"] if not rule[1].startswith("weather")]
    assert left == talk.before
