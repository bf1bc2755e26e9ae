"""Requests for titles, tags and summaries: the agent's model answers, and the agent does not see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.letta.gateway import HELPER_PREFIX
from testbed.model import shown
from tests.real.talk import NO_RESULT, NUDGE, Talk, calling, result, story_of, tool
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.one_type]

HISTORY = "\n### Chat History:\n<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>"
TITLE = {"role": "system", "content": "You are a title generator. Say nothing else."}
READ = tool("read", path={"type": "string"})
TOOL = {"type": "function", "function": {"name": "save_note", "parameters": {"type": "object", "properties": {}}}}


def remembered(agent: Agent) -> tuple[list[str], Any]:
    return agent.state()["message_ids"], agent.fingerprint()


@pytest.mark.parametrize(
    "messages",
    [
        [TITLE, {"role": "user", "content": "Generate a title:"}, {"role": "user", "content": "!say A Title"}],
        [{"role": "user", "content": f"### Task:\nGenerate tags.\n!say A Title{HISTORY}"}],
    ],
    ids=["a system prompt", "a task"],
)
def test_the_agent_does_not_see_a_request_for_a_title_or_tags(
    agent: Agent, messages: list[dict[str, str]], stream: bool
) -> None:
    agent.ask("Good morning")
    before = remembered(agent)
    assert agent.ask(messages=messages, stream=stream).text == "A Title"
    assert remembered(agent) == before
    assert "Good morning" not in "".join(agent.story())
    helpers = agent.world.letta("GET", "/v1/agents/", show_hidden_agents=True, include_relationships="")
    assert not [helper for helper in helpers if helper["name"].startswith(HELPER_PREFIX)]


@pytest.mark.two_servers
def test_a_suffix_of_the_model_asks_past_the_agent(agent: Agent) -> None:
    before = remembered(agent)
    reply = agent.ask("!say aside", model=f"{agent.name}:aside")
    assert (reply.error, reply.text) == (None, "aside")
    assert remembered(agent) == before


@pytest.mark.two_servers
def test_such_a_request_may_call_tools_and_contains_the_whole_history(agent: Agent) -> None:
    before = remembered(agent)
    system = "You are performing a managed memory dream over files."
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Dream.\n!call save_note {}"}]
    reply = agent.ask(messages=messages, system=system, tools=[TOOL])
    assert reply.calls == [("save_note", {})]
    messages += [reply.message, {"role": "tool", "tool_call_id": reply.call_ids[0], "content": "saved 42"}]
    messages += [{"role": "user", "content": "!say dreamt"}]
    assert agent.ask(messages=messages, system=system, tools=[TOOL]).text == "dreamt"
    assert any("saved 42" in line for line in agent.story())
    assert remembered(agent) == before


def go_on(agent: Agent) -> list[str]:
    """Returns the message that follows the last results where they can't be the last message themselves."""
    at_least = agent.world.at_least
    return [NUDGE] if at_least("0.9.0") and not at_least("0.16.4") else []


@pytest.mark.two_servers
def test_calls_and_results_of_earlier_requests_are_shown_as_such(agent: Agent, stream: bool) -> None:
    before = remembered(agent)
    talk = Talk(agent, READ, stream=stream, model=f"{agent.name}:aside", system="You read files for another agent.")
    steps = "\n!next\n".join(calling("read*", path=path) for path in "abc")
    expected = ["user: Read three files."]
    reply = talk.say(f"Read three files.\n{steps}\n!next\n!answer")
    for path in "abc":
        assert reply.calls == [("read", {"path": path})]
        assert talk.story()[: len(expected)] == expected
        reply = talk.give(f"text of {path}")
        expected += [f'call read {{"path": "{path}"}}', f"result of read: text of {path}"]
        assert talk.story() == [*expected, *go_on(agent)]
    assert (reply.calls, reply.text) == ([], "text of c")
    assert talk.say("!say Goodbye").text == "Goodbye"
    assert talk.story() == [*expected, "assistant: text of c", "user: !say Goodbye"]
    assert is_well_formed(agent)
    assert remembered(agent) == before


def test_a_transcript_that_other_agents_made_is_shown_as_such(agent: Agent) -> None:
    long_id = "toolu_01" + "x" * 50
    calls = [call("read", {"path": "a"}, f"{long_id}1"), call("read", {"path": "b"}, f"{long_id}2")]
    odd = 'He said "hi" \\ caf\u00e9 \U0001f600\n{"status": "OK"}'
    messages = [
        {"role": "user", "content": "Read both."},
        {"role": "assistant", "content": "I read.", "tool_calls": calls},
        result(calls[1]["id"], odd),
        result(calls[0]["id"], {"content": "No such file.", "is_error": True}),
        {"role": "assistant", "content": None, "tool_calls": [call("forgotten", "broken", "call_1")]},
        {"role": "user", "content": "Stop. What did you read?"},
        {"role": "assistant", "content": odd},
        {"role": "user", "content": "!say Bye"},
    ]
    reply = agent.ask(messages=messages, tools=[READ], model=f"{agent.name}:aside")
    assert (reply.error, reply.text) == (None, "Bye")
    beside = ["assistant: I read."] if agent.world.at_least("0.12.0") else []  # before, it is the thought of the calls
    assert story_of(agent, [READ]) == [
        "user: Read both.",
        *beside,
        'call read {"path": "a"}',
        'call read {"path": "b"}',
        "result of read FAILED: No such file.",
        f"result of read: {odd}",
        'call forgotten {"arguments": "broken"}',
        f"result of forgotten FAILED: {NO_RESULT}",
        "user: Stop. What did you read?",
        f"assistant: {odd}",
        "user: !say Bye",
    ]
    assert is_well_formed(agent)


@pytest.mark.two_servers
def test_a_request_without_tools_has_earlier_calls_in_words(agent: Agent) -> None:
    before = remembered(agent)
    messages = [
        {"role": "user", "content": "Read a."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call("read", {"path": "a"}, "call_1")]},
        result("call_1", "text of a"),
        {"role": "user", "content": "!say Bye"},
    ]
    reply = agent.ask(messages=messages, model=f"{agent.name}:aside")
    assert (reply.error, reply.text) == (None, "Bye")
    story = agent.story()
    first, said, quote, last = story[:2] + story[-2:]
    assert [first, said, last] == ["user: Read a.", "assistant: I look.", "user: !say Bye"]
    assert json.loads(quote.removeprefix("user: "))["result"] == "text of a"
    assert remembered(agent) == before


def is_well_formed(agent: Agent) -> bool:
    """Returns whether the model was shown each call with one result, next after the message with the call."""
    due: list[str] = []
    for message in shown(agent.world.model.last_request().messages):
        if message.kind == "tool":
            if message.call_id not in due:
                return False
            due.remove(message.call_id)
        elif due:
            return False
        due += [one.id for one in message.calls]
        if len(set(due)) < len(due):
            return False
    return not due


def call(name: str, arguments: Any, call_id: str) -> Json:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


@pytest.mark.two_servers
def test_a_users_message_is_not_mistaken_for_such_a_request(world: World, agent: Agent) -> None:
    for text in (
        "### Task:\nWrite a title for my essay.\n!say ok",
        "You are a title generator. Make a title.\n!say ok",
    ):
        agent.ask(text)
        assert any(line.startswith(f"user: {text[:20]}") for line in agent.story())
    assert len(agent.state()["message_ids"]) > 4
