"""The agent's reply becomes the JSON that the client wants, or the agent is asked again; its model shows how."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from tests.real.talk import WEATHER, Talk, calling
from tests.real.world import Agent, Reply, World

pytestmark = [pytest.mark.real, pytest.mark.two_servers]

ANY_OBJECT = {"type": "json_object"}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
    "additionalProperties": False,
}
OF_SCHEMA = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
OSLO = '{"city": "Oslo", "degrees": 12}'
WORDS = "It is warm in Oslo."
NO_VALUE = "it contains no JSON value instead of one"
NO_DEGREES = '"degrees" is a required property'


def saying(*replies: str) -> str:
    """Returns a message that makes the model say these replies, one in each step."""
    return "Weather?\n" + "\n!next\n".join(f"!say {json.dumps(reply)}" for reply in replies)


def correction(fault: str) -> str:
    return (
        f"system: [Your reply was not passed on to the user's application, because {fault}. Write the whole reply"
        " again, in the form that the application asked for: the JSON and nothing else.]"
    )


def outcome(reply: Reply) -> str | None:
    """Returns what the header says, or the comment of a stream whose headers were sent before."""
    told = reply.headers.get("X-Bridge-Format")
    return reply.streamed.reply_format if told is None and reply.streamed else told


@pytest.mark.two_servers
@pytest.mark.parametrize(
    "said",
    [OSLO, f"```json\n{OSLO}\n```", f"Here you are: {OSLO}\nAnything else?"],
    ids=["alone", "fenced", "in prose"],
)
@pytest.mark.parametrize("form", [ANY_OBJECT, OF_SCHEMA], ids=["object", "schema"])
def test_the_client_gets_only_the_json_and_the_agent_remembers_its_words(
    agent: Agent, stream: bool, said: str, form: dict[str, Any]
) -> None:
    talk = Talk(agent, stream=stream)
    reply = talk.say(saying(said), response_format=form)
    assert (reply.text, reply.finish_reason, outcome(reply)) == (OSLO, "stop", "valid")
    talk.ends_with("user: Weather?", f"assistant: {said}")


@pytest.mark.parametrize(
    ("form", "first", "fault"),
    [(ANY_OBJECT, WORDS, NO_VALUE), (OF_SCHEMA, '{"city": "Oslo"}', NO_DEGREES)],
    ids=["object", "schema"],
)
def test_an_agent_whose_reply_does_not_fit_is_asked_once_more(
    agent: Agent, stream: bool, form: dict[str, Any], first: str, fault: str
) -> None:
    talk = Talk(agent, stream=stream)
    reply = talk.say(saying(first, OSLO), response_format=form)
    assert (reply.text, reply.finish_reason, outcome(reply)) == (OSLO, "stop", "valid")
    assert reply.usage is not None
    assert reply.usage["completion_tokens"] > 0
    talk.ends_with("user: Weather?", f"assistant: {first}", correction(fault), f"assistant: {OSLO}")


@pytest.mark.two_servers
def test_a_second_reply_that_does_not_fit_either_is_returned_as_it_is(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, stream=stream)
    reply = talk.say(saying(WORDS, "Really warm."), response_format=ANY_OBJECT)
    assert (reply.text, reply.finish_reason, outcome(reply)) == ("Really warm.", "stop", "invalid")
    talk.ends_with("user: Weather?", f"assistant: {WORDS}", correction(NO_VALUE), "assistant: Really warm.")


def test_a_call_is_passed_on_and_the_answer_to_its_result_is_checked(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream, response_format=OF_SCHEMA)
    script = f"Weather?\n{calling(city='Oslo')}\n!next\n!say {WORDS}\n!next\n!say {json.dumps(OSLO)}"
    reply = talk.say(script)
    assert (reply.calls, outcome(reply)) == ([("weather", {"city": "Oslo"})], None)
    reply = talk.give("12 degrees")
    assert (reply.text, outcome(reply)) == (OSLO, "valid")
    story = talk.story()
    assert story[-1].startswith("system: [Your reply was not passed on")
    assert "result of weather: 12 degrees" in story
    assert f"assistant: {WORDS}" in story


def test_a_call_instead_of_the_second_reply_gets_its_result(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream, response_format=OF_SCHEMA)
    reply = talk.say(f"Weather?\n!say {WORDS}\n!next\n{calling(city='Oslo')}\n!next\n!say {json.dumps(OSLO)}")
    assert reply.calls == [("weather", {"city": "Oslo"})]
    assert talk.give("12 degrees").text == OSLO
    assert "result of weather: 12 degrees" in talk.story()


@pytest.mark.two_servers
def test_a_request_aside_is_checked_and_leaves_no_trace(agent: Agent, stream: bool) -> None:
    agent.ask("Good morning")
    before = agent.state()["message_ids"]
    reply = agent.ask(saying(WORDS, OSLO), model=f"{agent.name}:aside", response_format=ANY_OBJECT, stream=stream)
    assert (reply.text, outcome(reply)) == (OSLO, "valid")
    assert agent.state()["message_ids"] == before


@pytest.mark.two_servers
def test_a_repeat_gets_the_checked_answer(agent: Agent, stream: bool) -> None:
    messages = [{"role": "user", "content": saying(WORDS, OSLO)}]
    with agent.world.openai() as client:
        asked: Any = {"model": agent.name, "messages": messages, "response_format": ANY_OBJECT}
        key = {"Idempotency-Key": f"of-{agent.id}"}
        first = client.chat.completions.create(**asked, extra_headers=key)
        known = agent.state()["message_ids"]
        again = client.chat.completions.create(**asked, extra_headers=key)
    assert first.choices[0].message.content == again.choices[0].message.content == OSLO
    assert agent.state()["message_ids"] == known


class Weather(BaseModel):
    city: str
    degrees: int


@pytest.mark.two_servers
def test_openais_package_parses_the_reply(agent: Agent, world: World, stream: bool) -> None:
    asked: Any = {"model": agent.name, "messages": [{"role": "user", "content": saying(WORDS, f"Here: {OSLO}")}]}
    with world.openai() as client:
        if stream:
            with client.chat.completions.stream(**asked, response_format=Weather) as events:
                parsed = events.get_final_completion().choices[0].message.parsed
        else:
            parsed = client.chat.completions.parse(**asked, response_format=Weather).choices[0].message.parsed
    assert parsed == Weather(city="Oslo", degrees=12)
