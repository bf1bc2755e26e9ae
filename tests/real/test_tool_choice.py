"""Which tools the model may or must call, judged by what it is offered."""

from __future__ import annotations

import pytest

from tests.real.talk import ANSWER, CLOCK, OSLO, WEATHER, Talk, ask_weather, calling, story_of
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

CLOCK_ONLY = {"type": "function", "function": {"name": "clock"}}


def offered(world: World) -> list[str]:
    """Returns the plain names of the client's tools that the model was offered last."""
    tools = world.model.last_request().tools
    return [plain for plain in ("weather", "clock") if any(name.startswith(plain) for name in tools)]


def must_call(world: World) -> set[str]:
    """Returns the first words of the names of the tools, if the model had to call one of them."""
    offer = world.model.last_request().offer
    if offer.demand != "required":
        return set()
    return {tool.name.split("_")[0] for tool in offer.tools if offer.named in (None, tool.name)}


def test_auto_offers_all_tools_and_requires_none(world: World, agent: Agent) -> None:
    talk = Talk(agent, WEATHER, CLOCK, tool_choice="auto")
    assert talk.say("Hello\n!say Hello").text == "Hello"
    assert offered(world) == ["weather", "clock"]
    # The older loops always require a call, at least of their own send_message.
    assert must_call(world) == (set() if agent.type == "letta_v1_agent" else {"send", "weather", "clock"})


def test_none_offers_nothing(world: World, agent: Agent) -> None:
    talk = Talk(agent, WEATHER)
    assert talk.say("Hello\n!say Hello").text == "Hello"
    assert talk.say(ask_weather(), tool_choice="none").calls == []
    assert offered(world) == []
    assert agent.fingerprint() == talk.before


def test_required_requires_a_call_of_one_of_the_clients_tools(world: World, agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, CLOCK, stream=stream)
    reply = talk.say("Hello\n!say I had rather not.", tool_choice="required")
    assert must_call(world) == {"weather", "clock"}
    assert len(reply.calls) == 1
    answer = talk.give("noon")
    assert answer.finish_reason == "stop"
    assert must_call(world) != {"weather", "clock"}
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before


def test_a_named_tool_is_the_only_one_that_can_be_called(world: World, agent: Agent) -> None:
    talk = Talk(agent, WEATHER, CLOCK)
    reply = talk.say(f"Weather?\n{calling(city='Oslo')}\n{ANSWER}", tool_choice=CLOCK_ONLY)
    assert must_call(world) == {"clock"}
    assert reply.calls == [("clock", {})]
    assert talk.give("noon").text == "noon"
    assert must_call(world) != {"clock"}
    story = ["user: Weather?", "call clock {}", "result of clock: noon", "assistant: noon"]
    talk.ends_with(*story)


@pytest.mark.two_servers
def test_a_request_with_a_result_may_have_another_tool_choice(world: World, agent: Agent) -> None:
    """The tool choice of each request applies to its own answer, as with OpenAI."""
    talk = Talk(agent, WEATHER, CLOCK)
    talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n!say Cold.\n{ANSWER}")
    reply = talk.give("12 degrees", tool_choice=CLOCK_ONLY)
    assert must_call(world) == {"clock"}
    assert reply.calls == [("clock", {})]
    assert talk.give("noon").text == "noon"
    results = [line for line in story_of(agent, talk.tools) if line.startswith(("call", "result"))]
    assert results == [OSLO, "result of weather: 12 degrees", "call clock {}", "result of clock: noon"]
    assert agent.ask("bye").text == "You said: bye"
    assert agent.fingerprint() == talk.before
