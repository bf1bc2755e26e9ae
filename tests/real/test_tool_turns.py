"""The agent calls the client's tool, the run stops, the result becomes the tool's return, and the agent goes on."""

from __future__ import annotations

import json
import re

import pytest

from tests.real.talk import (
    ANSWER,
    CLOCK,
    MEMORY_TOOL,
    OSLO,
    WEATHER,
    Talk,
    ask_weather,
    calling,
    method_of,
    nudge,
    tool,
)
from tests.real.world import Agent

pytestmark = [pytest.mark.real, pytest.mark.strict]

CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}\Z")


def test_a_call_goes_out_and_its_result_comes_back(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    reply = talk.say(ask_weather())
    assert reply.method == method_of(agent)
    assert reply.finish_reason == "tool_calls"
    assert reply.calls == [("weather", {"city": "Oslo"})]
    assert reply.text == ""
    answer = talk.give("12 degrees")
    assert (answer.text, answer.finish_reason, answer.calls) == ("12 degrees", "stop", [])
    so_far = ["user: Weather?", OSLO, "result of weather: 12 degrees"]
    assert talk.story() == [*so_far, *nudge(agent)]
    talk.ends_with(*so_far, "assistant: 12 degrees")


@pytest.mark.two_servers
def test_a_message_after_the_result_reaches_the_agent_after_it(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    talk.say(ask_weather())
    answer = talk.give("12 degrees", then="<environment_details>noon</environment_details>")
    assert answer.text == "12 degrees"
    so_far = [
        "user: Weather?",
        OSLO,
        "result of weather: 12 degrees",
        "user: <environment_details>noon</environment_details>",
    ]
    assert talk.story() == so_far
    talk.ends_with(*so_far, "assistant: 12 degrees")


def test_several_calls_follow_each_other(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, CLOCK, stream=stream)
    first = talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n{calling('clock*')}\n{ANSWER}")
    second = talk.give("12 degrees")
    assert second.calls == [("clock", {})]
    assert second.message["tool_calls"][0]["function"]["arguments"] == "{}"
    assert talk.give("noon").text == "noon"
    ids = [*first.call_ids, *second.call_ids]
    assert len(set(ids)) == 2
    assert all(CALL_ID.match(call_id) for call_id in ids)
    so_far = ["user: Weather?", OSLO, "result of weather: 12 degrees", "call clock {}", "result of clock: noon"]
    assert talk.story() == [*so_far, *nudge(agent)]
    talk.ends_with(*so_far, "assistant: noon")


def test_text_and_reasoning_before_a_call_are_passed_on(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    reply = talk.say(f"Weather?\n!think I wonder.\n!say Let me look.\n{calling(city='Oslo')}\n{ANSWER}")
    assert reply.calls == [("weather", {"city": "Oslo"})]
    if agent.type == "letta_v1_agent":
        assert reply.text == "Let me look."
    else:
        assert reply.message["reasoning_content"] == "I wonder."
    assert talk.give("12 degrees").text == "12 degrees"


def test_the_servers_own_tools_run_before_and_after_a_call(remembering: Agent, stream: bool) -> None:
    talk = Talk(remembering, WEATHER, stream=stream)
    note = [f'!call {MEMORY_TOOL} {{"label": "human", "content": "{text}"}}' for text in ("tea", "rain")]
    reply = talk.say(f"Weather?\n{note[0]}\n!next\n{calling(city='Oslo')}\n!next\n{note[1]}\n{ANSWER}")
    assert reply.calls == [("weather", {"city": "Oslo"})]
    answer = talk.give("12 degrees")
    assert answer.calls == []
    assert answer.finish_reason == "stop"
    assert dict(remembering.fingerprint()["blocks"])["human"] == "Nothing known.\ntea\nrain"
    calls = [line.split()[1] for line in talk.story() if line.startswith("call ")]
    assert calls == [MEMORY_TOOL, "weather", MEMORY_TOOL]
    assert [line for line in talk.story() if line.startswith("result of weather")] == ["result of weather: 12 degrees"]
    assert remembering.ask("bye").text == "You said: bye"


@pytest.mark.two_servers
def test_falsy_arguments_are_kept(agent: Agent, stream: bool) -> None:
    given = {"flag": False, "count": 0, "share": 0.0, "text": "", "nothing": None, "list": [], "object": {}}
    types = ["boolean", "integer", "number", "string", ["string", "null"], "array", "object"]
    properties = {name: {"type": kind} for name, kind in zip(given, types, strict=True)}
    properties["list"]["items"] = {"type": "string"}
    talk = Talk(agent, tool("falsy", **properties), stream=stream)
    reply = talk.say(f"Go.\n{calling('falsy*', **given)}\n{ANSWER}")
    assert reply.calls == [("falsy", given)]
    assert talk.give("done").text == "done"


@pytest.mark.two_servers
def test_unusual_names_come_back_as_the_client_wrote_them(agent: Agent) -> None:
    names = ["class", "from", "self", "my-param", "x.y", "request_heartbeat", "thinking", "inner_thoughts", "$filter"]
    long = "mcp--odd-server--get-weather.v2_" + "x" * 60
    odd, plain = tool("fs.read-file", **{name: {"type": "string"} for name in names}), tool(long, q={"type": "integer"})
    talk = Talk(agent, odd, plain)
    talk.say("Hello")
    (shown,) = [one for one in agent.world.model.last_request().tools.values() if "fs" in one.name]
    own = [name for name in shown.properties if name not in ("request_heartbeat", "thinking", "inner_thoughts")]
    assert len(own) == len(names)
    reply = talk.say(f"Go.\n{calling('fs*', **{name: f'value {name}' for name in own})}\n{ANSWER}")
    assert [name for name, _ in reply.calls] == ["fs.read-file"]
    assert sorted(reply.calls[0][1]) == sorted(names)
    assert len(set(reply.calls[0][1].values())) == len(names)
    assert talk.give("done").text == "done"
    reply = talk.say(f"Go.\n{calling('mcp*', q=0)}\n{ANSWER}")
    assert reply.calls == [(long, {"q": 0})]
    assert talk.give("done").text == "done"


@pytest.mark.two_servers
def test_a_call_is_the_same_streamed_and_whole(agent: Agent) -> None:
    forms = []
    for stream in (False, True):
        talk = Talk(agent, WEATHER, stream=stream)
        (call,) = talk.say(f"Weather?\n{calling(city='Zürich 😀')}\n{ANSWER}").message["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == {"city": "Zürich 😀"}
        forms.append((re.sub(r"[0-9a-f]", "x", call["id"]), call["type"], call["function"]))
        assert talk.give("12").text == "12"
    assert forms[0] == forms[1]
