"""Chats with a context of their own: what the model is shown in each, whatever happens in the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.service import Service
from tests.real.talk import OSLO, WEATHER, Talk, ask_weather, calling, echo, result, story_of
from tests.real.world import Agent, Api, Reply, World

pytestmark = [pytest.mark.real, pytest.mark.strict]

EACH = {"BRIDGE_CHATS": "each", "BRIDGE_TOOL_WAIT": "30"}


@pytest.fixture(scope="module")
def bridge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with world.start_bridge(**EACH, BRIDGE_DATA_DIR=str(tmp_path_factory.mktemp("each"))) as service:
        yield service


def story(talk: Talk) -> list[str]:
    return [line for line in talk.story() if not line.startswith("system: [The tool")]


def test_each_chat_has_a_context_of_its_own(agent: Agent, bridge: Service, stream: bool) -> None:
    one, two = (Talk(agent, WEATHER, stream=stream, bridge=bridge) for _ in range(2))
    one.say("I am Ann.\n!say Hello Ann.")
    assert story(one) == ["user: I am Ann."]
    two.say("I am Bob.\n!say Hello Bob.")
    assert story(two) == ["user: I am Bob."]
    one.say("Who am I?\n!say Ann.")
    assert story(one) == ["user: I am Ann.", "assistant: Hello Ann.", "user: Who am I?"]
    two.say("And I?\n!say Bob.")
    assert story(two) == ["user: I am Bob.", "assistant: Hello Bob.", "user: And I?"]


def test_a_call_waits_in_its_chat_while_others_speak(agent: Agent, bridge: Service, stream: bool) -> None:
    one, two, three = (Talk(agent, WEATHER, stream=stream, bridge=bridge) for _ in range(3))
    assert one.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
    assert two.say(ask_weather("Rome")).calls == [("weather", {"city": "Rome"})]
    assert three.say("Here I am.\n!say Welcome.").text == "Welcome."
    assert story(three) == ["user: Here I am."]
    assert one.give("12 degrees").text == "12 degrees"
    assert story(one) == ["user: Weather?", OSLO, "result of weather: 12 degrees"]
    assert two.give("20 degrees").text == "20 degrees"
    assert story(two) == ["user: Weather?", OSLO.replace("Oslo", "Rome"), "result of weather: 20 degrees"]
