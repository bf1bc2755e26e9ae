"""Several calls in one reply, where the agent can make them; elsewhere only the first call counts."""

from __future__ import annotations

import pytest

from bridge.interception.approval import ONE_AT_A_TIME
from tests.real.talk import ANSWER, MEMORY_TOOL, NO_RESULT, OSLO, WEATHER, Talk, calling, quote, result
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict]

ROME = 'call weather {"city": "Rome"}'
BOTH = f"Weather?\n{calling(city='Oslo')}\n{calling(city='Rome')}\n{ANSWER}"
NOTE = f'!call {MEMORY_TOOL} {{"label": "human", "content": "tea"}}'


def can_call_in_parallel(agent: Agent) -> bool:
    return agent.type == "letta_v1_agent" and agent.world.at_least("0.14.0")


def setting(agent: Agent) -> object:
    """Returns whether the agent may make several calls in one step, and the bridge's note about it."""
    state = agent.state()
    return state["llm_config"].get("parallel_tool_calls"), state.get("metadata") or {}


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_two_calls_come_in_one_reply_and_their_results_in_any_order(agent: Agent, stream: bool) -> None:
    before = setting(agent)
    talk = Talk(agent, WEATHER, stream=stream)
    reply = talk.say(BOTH)
    if not can_call_in_parallel(agent):
        assert reply.calls == [("weather", {"city": "Oslo"})]
        assert talk.give("12 degrees").text == "12 degrees"
        talk.ends_with("user: Weather?", OSLO, "result of weather: 12 degrees", "assistant: 12 degrees")
        assert setting(agent) == before
        return
    assert agent.world.model.last_request().offer.parallel
    assert reply.calls == [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]
    oslo, rome = reply.call_ids
    assert oslo != rome
    answer = talk.send(result(rome, "20 degrees"), result(oslo, "12 degrees"))
    assert answer.text == "12 degrees\n20 degrees"
    results = ["result of weather: 12 degrees", "result of weather: 20 degrees"]
    talk.ends_with("user: Weather?", OSLO, ROME, *results, "assistant: 12 degrees\n20 degrees")
    assert setting(agent) == before


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_missing_result_is_reported_as_missing_and_the_agent_goes_on(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    reply = talk.say(BOTH)
    talk.send(result(reply.call_ids[-1], "20 degrees"), {"role": "user", "content": "Only that."})
    if can_call_in_parallel(agent):
        missing = f"result of weather: {NO_RESULT}"
        expected = ["user: Weather?", OSLO, ROME, missing, "result of weather: 20 degrees", "user: Only that."]
    else:
        expected = ["user: Weather?", OSLO, "result of weather: 20 degrees", "user: Only that."]
    assert talk.story() == expected


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
def test_a_result_that_comes_after_the_answer_to_the_others_is_quoted_beside_a_message(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    reply = talk.say(BOTH)
    if not can_call_in_parallel(agent):
        assert len(reply.calls) == 1
        return
    oslo, rome = reply.call_ids
    talk.send(result(rome, "20 degrees"))
    talk.refuses(result(oslo, "12 degrees"))
    talk.send(result(oslo, "12 degrees"), {"role": "user", "content": "Here it is.\n!say Thanks."})
    talk.ends_with(
        *["user: Weather?", OSLO, ROME, f"result of weather: {NO_RESULT}", "result of weather: 20 degrees"],
        *[f"assistant: {NO_RESULT}\n20 degrees", quote("12 degrees"), "user: Here it is.", "assistant: Thanks."],
    )


@pytest.mark.two_servers
def test_a_client_that_accepts_one_call_gets_one(agent: Agent, stream: bool) -> None:
    before = setting(agent)
    talk = Talk(agent, WEATHER, stream=stream, parallel_tool_calls=False)
    disobey = "!disobey\n" if can_call_in_parallel(agent) else ""
    reply = talk.say(BOTH.replace(ANSWER, disobey + ANSWER))
    assert reply.calls == [("weather", {"city": "Oslo"})]
    # Servers before 0.8 do not say so to the model, and take one call of several by themselves.
    assert agent.world.model.last_request().offer.parallel == (not agent.world.at_least("0.8.0"))
    assert talk.give("12 degrees").error is None
    shown = [line for line in talk.story() if "FAILED" in line]
    assert all(
        line.startswith("result of weather FAILED: Not run: the client takes one call at a time.") for line in shown
    )
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before
    assert setting(agent) == before


def test_the_setting_follows_the_requests_and_is_written_only_when_they_change(world: World, agent: Agent) -> None:
    if not can_call_in_parallel(agent):
        assert not world.model.requests()
        return
    before = setting(agent)
    talk = Talk(agent, WEATHER)
    talk.say("one")
    assert setting(agent) == (True, {"letta-tool-bridge": {"parallel_tool_calls": "was off"}})
    world.proxy.clear()
    talk.say("two")
    assert world.proxy.count("PATCH") == 0
    talk.say("three", parallel_tool_calls=False)
    assert not world.model.last_request().offer.parallel
    assert setting(agent) == before
    talk.say("four")
    assert world.model.last_request().offer.parallel
    agent.ask("five")
    assert setting(agent) == before


def test_the_setting_of_the_owner_is_kept(world: World, agent: Agent) -> None:
    if not can_call_in_parallel(agent):
        assert not world.model.requests()
        return
    world.letta("PATCH", f"/v1/agents/{agent.id}", {"parallel_tool_calls": True})
    before = setting(agent)
    talk = Talk(agent, WEATHER)
    talk.say("one")
    reply = talk.say(BOTH, parallel_tool_calls=False)
    assert reply.calls == [("weather", {"city": "Oslo"})]
    talk.give("12 degrees", parallel_tool_calls=False)
    assert talk.story()[-4:] == [
        OSLO,
        ROME,
        "result of weather: 12 degrees",
        f"result of weather FAILED: {ONE_AT_A_TIME}",
    ]
    agent.ask("bye")
    assert setting(agent) == before


@pytest.fixture
def noting(remembering: Agent) -> Agent:
    """An agent with a tool of its own that can be called together with others."""
    if can_call_in_parallel(remembering):
        # Letta makes no parallel calls for an agent with the rules that come with the tool.
        remembering.world.letta("PATCH", f"/v1/agents/{remembering.id}", {"tool_rules": []})
    return remembering


@pytest.mark.two_servers
def test_a_step_that_also_calls_a_tool_of_the_agent_runs_it(noting: Agent, stream: bool) -> None:
    for calls in (f"{NOTE}\n{calling(city='Oslo')}", f"{calling(city='Oslo')}\n{NOTE}"):
        talk = Talk(noting, WEATHER, stream=stream)
        reply = talk.say(f"Weather?\n{calls}\n!next\n!say Done.")
        if reply.calls:
            assert reply.calls == [("weather", {"city": "Oslo"})]
            assert talk.give("12 degrees").text == "Done."
        assert noting.ask("bye").text == "You said: bye"
    remembered = dict(noting.fingerprint()["blocks"])["human"].count("tea")
    assert remembered == (2 if can_call_in_parallel(noting) else 1)


@pytest.mark.two_servers
def test_calls_before_and_after_one_of_the_agents_own_get_their_results(noting: Agent, stream: bool) -> None:
    talk = Talk(noting, WEATHER, stream=stream)
    reply = talk.say(f"Weather?\n{calling(city='Oslo')}\n{NOTE}\n{calling(city='Rome')}\n{ANSWER}")
    asked = ["Oslo", "Rome"] if can_call_in_parallel(noting) else ["Oslo"]
    assert [call["city"] for _, call in reply.calls] == asked
    given = {"Oslo": "12 degrees", "Rome": "20 degrees"}
    talk.give(*(given[city] for city in asked))
    results = [line for line in talk.story() if line.startswith("result of weather")]
    assert results == [f"result of weather: {given[city]}" for city in asked]
    assert noting.ask("bye").text == "You said: bye"
