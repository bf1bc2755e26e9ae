"""Conversations as clients lead them: the agent's model is shown each of the client's words, once and in order."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.real.talk import WEATHER, Talk, ask_weather, echo, result
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

OK = {"role": "assistant", "content": "Ok, I will keep to these files."}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def quoted(text: str) -> str:
    return "user: " + json.dumps({"type": "earlier_message", "from": "another assistant", "text": text})


class EditingClient:
    """A client that puts the contents of its files, and an answer of its own making, at changing places before each
    request, as clients that edit files do.
    """

    def __init__(self, agent: Agent, *, stream: bool) -> None:
        self._agent = agent
        self._stream = stream
        self._history: list[Json] = []

    def ask(self, text: str, files: Json, place: int) -> str:
        shown = [user("\n".join(f"{name}: {content}" for name, content in files.items())), OK]
        place = min(place, len(self._history))
        messages = [*self._history[:place], *shown, *self._history[place:], user(text)]
        reply = self._agent.ask(messages=messages, stream=self._stream)
        assert reply.error is None, reply.error
        self._history += [user(text), {"role": "assistant", "content": reply.text}]
        return reply.text


@pytest.mark.two_servers
def test_an_editing_clients_files_are_told_once_for_each_change(agent: Agent, stream: bool) -> None:
    client = EditingClient(agent, stream=stream)
    contents = ["one", "one", "two", "two", "three", "one", "one", "four", "four", "four"]
    for number, content in enumerate(contents):
        answer = client.ask(f"Request {number}", {"a.py": content}, place=2 * (number % 4))
        assert answer == f"You said: Request {number}"
    told = [line for line in agent.story() if line.startswith("user: ")]
    expected: list[str] = []
    for number, content in enumerate(contents):
        if number == 0 or contents[number - 1] != content:
            expected.append(f"user: a.py: {content}")
            expected += [quoted(str(OK["content"]))] if number == 0 else []
        expected.append(f"user: Request {number}")
    assert told == expected
    assert Counter(told)[quoted(str(OK["content"]))] == 1


def test_a_chat_that_another_model_began_is_told_whole(agent: Agent, stream: bool) -> None:
    call = {"id": "call_abc", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    messages = [
        user("Read a"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        result("call_abc", "apples"),
        {"role": "assistant", "content": "There are apples."},
        user("And b?\n!say Pears."),
    ]
    reply = agent.ask(messages=messages, stream=stream)
    assert reply.text == "Pears."
    assert reply.headers["X-Bridge-Told"] == "4"
    first, called, returned, said, last = [line for line in agent.story() if line.startswith("user: ")]
    assert first == "user: Read a"
    assert json.loads(called.removeprefix("user: "))["calls"] == [
        {"call": "call_abc", "tool": "read", "arguments": '{"path": "a"}'}
    ]
    assert json.loads(returned.removeprefix("user: "))["result"] == "apples"
    assert said == quoted("There are apples.")
    assert last.startswith("user: And b?")
    before = len(agent.story())
    assert agent.ask(messages=[*messages, echo(reply), user("Thanks")], stream=stream).text == "You said: Thanks"
    assert [line for line in agent.story()[before:] if line.startswith("user: ")] == ["user: Thanks"]


def test_a_call_of_another_agent_and_its_result_reach_the_agent(world: World, agent: Agent) -> None:
    other = world.agent(agent.type)
    talk = Talk(other, WEATHER)
    (call_id,) = talk.say(ask_weather()).call_ids
    reply = agent.ask(messages=[*talk.messages, result(call_id, "12 degrees")], tools=[WEATHER])
    assert reply.error is None
    told = [line.removeprefix("user: ") for line in agent.story() if line.startswith("user: ")]
    assert told[0].startswith("Weather?")
    assert json.loads(told[1])["calls"][0]["call"] == call_id
    assert json.loads(told[2])["result"] == "12 degrees"
    other.delete()


@pytest.mark.two_servers
def test_a_bridge_that_knows_nothing_of_the_agent_asks_its_server(world: World, agent: Agent, stream: bool) -> None:
    talk = Talk(agent, WEATHER, stream=stream)
    talk.send(user("a.py: one"), OK, user("Hello\n!say The first."))
    talk.say(ask_weather())
    talk.give("12 degrees")
    talk.say("Well?\n!say Well.")
    expected = [line for line in agent.story() if line.startswith("user: ")]
    with world.start_bridge() as other:
        assert talk.say("And now?", bridge=other).text == "You said: And now?"
        assert talk.say("And then?", bridge=other).text == "You said: And then?"
    told = [line for line in agent.story() if line.startswith("user: ")]
    assert told == [*expected, "user: And now?", "user: And then?"]
    assert told[:2] == ["user: a.py: one", quoted(str(OK["content"]))]


@pytest.mark.two_servers
def test_an_edited_message_is_told_and_a_dropped_answer_is_not_missed(agent: Agent, stream: bool) -> None:
    talk = Talk(agent, stream=stream)
    talk.say("I am Tom.\n!say Hello.")
    talk.messages[0]["content"] = "I am Tim."
    talk.say("Who am I?\n!say Tim.")
    del talk.messages[-1]  # the client drops the answer
    talk.say("Well?\n!say Well.")
    told = [line.split("\n")[0] for line in agent.story() if line.startswith("user: ")]
    assert told == ["user: I am Tom.", "user: I am Tim.", "user: Who am I?", "user: Well?"]
