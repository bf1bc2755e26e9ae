"""The model sees a client's result exactly, once, and for the call that it belongs to."""

from __future__ import annotations

import json

import pytest

from tests.real.talk import ANSWER, OSLO, WEATHER, Talk, ask_weather, calling, method_of, nudge, result
from tests.real.world import Agent

pytestmark = [pytest.mark.real, pytest.mark.strict]

ODD = 'He said "hi" \\ café 😀 50% <b> \u2028 {"a": [1, null]}\n\tend'
PACKED = json.dumps({"status": "Failed", "message": "no", "time": "2026-01-01 01:01:01 AM UTC+0000"})
# letta_v1_agent shows its model at most a fifth of the context window per result: 0.2 x 64,000 tokens of 4 characters.
SHOWN_BY_V1 = 51_200


def newest_result(agent: Agent) -> tuple[str, str]:
    """Returns status and text of the newest result that the model was shown. Requests for summaries show no results."""
    shown = [one for request in agent.world.model.requests() for one in request.shown if one.tool.startswith("weather")]
    return shown[-1].status, shown[-1].text


def test_a_result_reaches_the_model_unchanged(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    for given in (ODD, PACKED, ""):
        talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!say Read.")
        assert talk.give(given).text == "Read."
        assert newest_result(agent) == ("OK", given)
    assert agent.ask("bye").text == "You said: bye"


@pytest.mark.two_servers
def test_the_parts_of_a_result_become_one_text(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say(ask_weather())
    parts = [{"type": "text", "text": "12"}, {"type": "text", "text": "degrees"}]
    assert talk.give({"content": parts, "name": "weather"}).text == "12\n\ndegrees"
    assert newest_result(agent) == ("OK", "12\n\ndegrees")


def test_a_failed_tool_is_reported_as_failed(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say(ask_weather())
    assert talk.give({"content": "No such city.", "status": "error"}).text == "No such city."
    # With the relay the stub runs, which Letta counts as a success.
    assert newest_result(agent) == ("OK" if method_of(agent) == "relay" else "Failed", "No such city.")


@pytest.mark.parametrize("size", [50_000, 1_000_000])
@pytest.mark.one_type
def test_a_large_result_is_complete_up_to_the_part_that_letta_shows(agent: Agent, size: int) -> None:
    text = "".join(f"{number:08} " for number in range(size // 9))
    talk = Talk(agent, WEATHER)
    talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!say Read.")
    assert talk.give(text).text == "Read."
    _, shown = newest_result(agent)
    if method_of(agent) in ("approval", "native") and size > SHOWN_BY_V1:
        assert text[: SHOWN_BY_V1 - 100] in shown
        assert len(shown) < SHOWN_BY_V1 + 200
    else:
        assert shown == text


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_result_that_is_sent_twice_counts_once(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    assert talk.send(result(call_id, "12 degrees"), result(call_id, "99 degrees")).text == "12 degrees"
    so_far = ["user: Weather?", OSLO, "result of weather: 12 degrees"]
    assert talk.story() == [*so_far, *nudge(agent)]
    talk.ends_with(*so_far, "assistant: 12 degrees")


@pytest.mark.two_servers
def test_results_of_earlier_turns_are_not_sent_again(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say(ask_weather())
    talk.give("12 degrees")
    old = talk.messages[2]
    assert talk.send(old, {"role": "user", "content": "And now?"}).text == "You said: And now?"
    talk.say(ask_weather("Rome"))
    assert talk.send(old, result(talk.messages[-1]["tool_calls"][0]["id"], "20 degrees")).text == "20 degrees"
    talk.ends_with(
        "user: Weather?",
        OSLO,
        "result of weather: 12 degrees",
        "assistant: 12 degrees",
        "user: And now?",
        "assistant: You said: And now?",
        "user: Weather?",
        'call weather {"city": "Rome"}',
        "result of weather: 20 degrees",
        "assistant: 20 degrees",
    )


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_result_that_belongs_to_no_call_is_refused_and_does_no_harm(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    talk.say("Hello")
    for call_id in ("call_unknown", "call_" + "0" * 35, "x" * 200):
        refused = talk.send(result(call_id, "12 degrees"))
        assert refused.status == 400
        assert refused.error is not None
        assert call_id[:40] in refused.error["message"]
        assert refused.error["code"] == "no_pending_call"
    answer = talk.send(result("call_unknown", "12 degrees"), {"role": "user", "content": "Hello?"})
    assert answer.text == "You said: Hello?"
    quote = {
        "type": "earlier_tool_result",
        "for": "another assistant",
        "call": "call_unknown",
        "status": "success",
        "result": "12 degrees",
    }
    heard = ["user: Hello", "assistant: You said: Hello", f"user: {json.dumps(quote)}", "user: Hello?"]
    talk.ends_with(*heard, "assistant: You said: Hello?")


@pytest.mark.fault("results that are late, unknown, missing, doubled or in another order")
@pytest.mark.two_servers
def test_a_second_result_for_an_answered_call_is_refused_and_does_no_harm(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    talk.give("12 degrees")
    refused = talk.send(result(call_id, "99 degrees"))
    assert refused.status == 400
    assert refused.error is not None
    assert call_id in refused.error["message"]
    so_far = ["user: Weather?", OSLO, "result of weather: 12 degrees", "assistant: 12 degrees"]
    assert talk.send(result(call_id, "99 degrees"), {"role": "user", "content": "Well?"}).text == "You said: Well?"
    talk.ends_with(*so_far, "user: Well?", "assistant: You said: Well?")


@pytest.mark.fault("the same request again")
@pytest.mark.two_servers
def test_a_client_that_missed_the_answer_gets_the_same_one_again(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    (call_id,) = talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!say Cold.").call_ids
    again = [*talk.messages, result(call_id, "12 degrees")]
    assert agent.ask(messages=again, tools=talk.tools).text == "Cold."
    agent.world.model.clear()
    for stream in (False, True):
        repeated = agent.ask(messages=again, tools=talk.tools, stream=stream)
        assert (repeated.text, repeated.finish_reason) == ("Cold.", "stop")
    assert agent.world.model.requests() == []
    talk.ends_with("user: Weather?", OSLO, "result of weather: 12 degrees", "assistant: Cold.")


@pytest.mark.fault("the same request again")
@pytest.mark.two_servers
def test_a_client_that_missed_a_call_gets_the_same_call_again(agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    script = f"Weather?\n{calling(city='Oslo')}\n!next\n{calling(city='Rome')}\n{ANSWER}"
    (call_id,) = talk.say(script).call_ids
    again = [*talk.messages, result(call_id, "12 degrees")]
    first = agent.ask(messages=again, tools=talk.tools)
    second = agent.ask(messages=again, tools=talk.tools, stream=True)
    assert first.calls == second.calls == [("weather", {"city": "Rome"})]
    assert first.call_ids == second.call_ids
    rome = {"role": "assistant", "content": None, "tool_calls": second.message["tool_calls"]}
    last = [*again, rome, result(second.call_ids[0], "20 degrees")]
    assert agent.ask(messages=last, tools=talk.tools).text == "20 degrees"
    talk.ends_with(
        "user: Weather?",
        OSLO,
        "result of weather: 12 degrees",
        'call weather {"city": "Rome"}',
        "result of weather: 20 degrees",
        "assistant: 20 degrees",
    )
