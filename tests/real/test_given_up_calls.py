"""Calls that the client answers late or never, and agents that wait for an approval of their owner."""

from __future__ import annotations

import pytest
import requests

from testbed.proxy import DropResponse
from tests.faults.client import persist
from tests.real.talk import (
    CLOCK,
    MEMORY_TOOL,
    NUDGE,
    WEATHER,
    Talk,
    ask_weather,
    calling,
    given_up,
    quote,
    result,
    story_of,
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


@pytest.mark.two_servers
def test_a_new_transcript_is_answered_and_may_lead_to_a_new_call(agent: Agent) -> None:
    Talk(agent, WEATHER).say(ask_weather())
    talk = Talk(agent, WEATHER)
    assert talk.say(ask_weather("Rome")).calls == [("weather", {"city": "Rome"})]
    assert talk.give("20 degrees").text == "20 degrees"
    rome = 'call weather {"city": "Rome"}'
    expected = ["user: Weather?", *given_up(agent), "user: Weather?", rome, "result of weather: 20 degrees"]
    assert [line for line in talk.story() if line != NUDGE] == expected


@pytest.mark.two_servers
def test_a_client_with_other_tools_or_none_is_answered(agent: Agent) -> None:
    before = agent.fingerprint()
    Talk(agent, WEATHER).say(ask_weather())
    assert Talk(agent, CLOCK).say("Hello\n!say Hello").text == "Hello"
    Talk(agent, WEATHER).say(ask_weather())
    assert agent.ask("Title?\n!say A title").text == "A title"
    assert agent.fingerprint() == before
    called = given_up(agent)
    assert story_of(agent, [WEATHER]) == [
        *["user: Weather?", *called, "user: Hello", "assistant: Hello"],
        *["user: Weather?", *called, "user: Title?"],
    ]


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_late_result_is_refused_alone_and_quoted_once_beside_a_message(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    (call_id,) = talk.say(ask_weather()).call_ids
    assert agent.ask("Title?\n!say A title").text == "A title"
    late = result(call_id, "12 degrees")
    talk.refuses(late)
    assert talk.send(late, {"role": "user", "content": "Well?\n!say Well."}).text == "Well."
    so_far = ["user: Weather?", *given_up(agent), "user: Title?", "assistant: A title", quote("12 degrees")]
    assert talk.story() == [*so_far, "user: Well?"]
    talk.refuses(result(call_id, "99 degrees"))
    assert talk.send(late, {"role": "user", "content": "And?\n!say Yes."}).text == "Yes."
    talk.ends_with(*so_far, "user: Well?", "assistant: Well.", "user: And?", "assistant: Yes.")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_late_result_further_up_in_the_transcript_is_quoted_once(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    talk.say("Never mind.\n!say All right.")
    talk.messages.insert(2, result(call_id, "12 degrees"))
    talk.say("Well?\n!say Well.")
    talk.say("And?\n!say Yes.")
    so_far = ["user: Weather?", *given_up(agent), "user: Never mind.", "assistant: All right.", quote("12 degrees")]
    talk.ends_with(*so_far, "user: Well?", "assistant: Well.", "user: And?", "assistant: Yes.")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_late_result_leaves_the_call_of_another_conversation_open(agent: Agent) -> None:
    talk, other = Talk(agent, WEATHER), Talk(agent, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    other.say(ask_weather("Rome"))
    talk.refuses(result(call_id, "12 degrees"))
    assert other.give("20 degrees").text == "20 degrees"
    rome = 'call weather {"city": "Rome"}'
    so_far = ["user: Weather?", *given_up(agent), "user: Weather?", rome, "result of weather: 20 degrees"]
    other.ends_with(*so_far, "assistant: 20 degrees")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_parents_result_after_its_childs_conversation_is_heard_once(agent: Agent, stream: bool) -> None:
    parent, child = Talk(agent, WEATHER, stream=stream), Talk(agent, WEATHER, stream=stream)
    (call_id,) = parent.say(ask_weather()).call_ids
    child.say(ask_weather("Rome"))
    child.give("20 degrees", then="Environment.\n!say Sunny.")
    environment = {"role": "user", "content": "Environment.\n!say Done."}
    assert parent.send(result(call_id, "The child is done."), environment).text == "Done."
    parent.ends_with(
        *["user: Weather?", *given_up(agent)],
        *["user: Weather?", 'call weather {"city": "Rome"}', "result of weather: 20 degrees", "user: Environment."],
        "assistant: Sunny.",
        *[quote("The child is done."), "user: Environment.", "assistant: Done."],
    )


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_late_result_whose_reply_was_lost_is_quoted_once(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    (call_id,) = talk.say(ask_weather()).call_ids
    talk.say("Never mind.\n!say All right.")
    again = [*talk.messages, result(call_id, "12 degrees"), {"role": "user", "content": "Well?\n!say Well."}]
    with agent.world.proxy.inject(DropResponse(), "POST", "/v1/agents/*/messages/stream", nth=1):
        assert agent.ask(messages=again, tools=talk.tools, stream=stream).error is not None
    assert persist(lambda: agent.ask(messages=again, tools=talk.tools, stream=stream)).text == "Well."
    so_far = ["user: Weather?", *given_up(agent), "user: Never mind.", "assistant: All right."]
    talk.ends_with(*so_far, quote("12 degrees"), "user: Well?", "assistant: Well.")


@pytest.mark.one_type
@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_a_result_for_the_call_of_another_agent_is_quoted_beside_a_message(world: World, agent: Agent) -> None:
    other = world.agent(agent.type)
    (call_id,) = Talk(other, WEATHER).say(ask_weather()).call_ids
    other.delete()
    talk = Talk(agent, WEATHER)
    talk.say("Hello\n!say Hello")
    talk.refuses(result(call_id, "12 degrees"))
    late = {**result(call_id, "12 degrees"), "name": "weather"}
    assert talk.send(late, {"role": "user", "content": "Well?\n!say Well."}).text == "Well."
    quoted = quote("12 degrees", arguments="")
    talk.ends_with("user: Hello", "assistant: Hello", quoted, "user: Well?", "assistant: Well.")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_an_abandoned_call_does_not_take_the_result_of_the_next_one(agent: Agent) -> None:
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


def test_an_agent_that_waits_for_its_owner_is_refused_and_the_bridge_does_not_decide(
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
        check_that_it_waits_for_its_owner(agent, stream)
    else:
        assert gate.status_code == 422, "nothing can hold an agent of this server"
    assert not world.model.refusals
    agent.delete()


def check_that_it_waits_for_its_owner(agent: Agent, stream: bool) -> None:
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
    if not agent.world.at_least("0.12.0"):  # 0.11 leaves the run active, and the bridge would wait for it
        agent.world.letta("POST", f"/v1/agents/{agent.id}/messages/cancel")
    assert agent.ask("Hello?\n!say Hello.", tools=[WEATHER], stream=stream).text == "Hello."


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.parametrize("deleted", [False, True], ids=["detached", "deleted"])
@pytest.mark.two_servers
def test_an_agent_whose_bridge_was_lost_during_a_call_is_freed(agent: Agent, deleted: bool) -> None:
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
    if deleted:  # by hand: then nothing on the server shows that the rule for that name was the bridge's
        left["rules"] = [rule for rule in left["rules"] if not rule[1].startswith("weather")]
    assert left == talk.before
