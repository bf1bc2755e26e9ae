"""Clients that expect a task to end with a call of a certain tool."""

from __future__ import annotations

import pytest

from tests.real.world import Agent

pytestmark = [pytest.mark.real, pytest.mark.two_servers]

READ = {
    "type": "function",
    "function": {
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    },
}
END = {
    "type": "function",
    "function": {
        "name": "attempt_completion",
        "parameters": {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]},
    },
}


def test_final_text_becomes_a_call_of_the_ending_tool(agent: Agent, stream: bool) -> None:
    messages = [{"role": "user", "content": '!call read_file {"path": "a"}\n!next\n!say All done'}]
    reply = agent.ask(messages=messages, tools=[READ, END], stream=stream)
    assert reply.calls == [("read_file", {"path": "a"})]
    messages += [reply.message, {"role": "tool", "tool_call_id": reply.call_ids[0], "content": "text"}]
    messages += [{"role": "user", "content": "<environment_details>\nnow\n</environment_details>"}]
    reply = agent.ask(messages=messages, tools=[READ, END], stream=stream)
    assert reply.calls == [("attempt_completion", {"result": "All done"})]
    assert reply.text == ""
    assert reply.finish_reason == "tool_calls"


def test_feedback_reaches_the_agent_and_an_empty_result_does_not(agent: Agent) -> None:
    messages = [{"role": "user", "content": "!say First try"}]
    reply = agent.ask(messages=messages, tools=[END])
    messages += [reply.message, {"role": "tool", "tool_call_id": reply.call_ids[0], "content": ""}]
    before = agent.state()["message_ids"]
    assert agent.ask(messages=messages, tools=[END]).finish_reason == "stop"
    assert agent.state()["message_ids"] == before
    messages[-1]["content"] = "<feedback>\nNot yet.\n</feedback>\n!say Second try"
    assert agent.ask(messages=messages, tools=[END]).calls == [("attempt_completion", {"result": "Second try"})]
    assert any("Not yet." in line for line in agent.story())


def test_a_call_of_the_ending_tool_by_the_agent_is_passed_on(agent: Agent) -> None:
    reply = agent.ask('!call attempt_completion {"result": "mine"}', tools=[READ, END])
    assert reply.calls == [("attempt_completion", {"result": "mine"})]
