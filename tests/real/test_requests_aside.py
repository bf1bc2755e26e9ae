"""Requests for titles, tags and summaries: the agent's model answers, and the agent does not see them."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.letta.gateway import HELPER_PREFIX
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.one_type]

HISTORY = "\n### Chat History:\n<chat_history>\nUSER: Hi\nASSISTANT: Hello\n</chat_history>"
TITLE = {"role": "system", "content": "You are a title generator. Say nothing else."}
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


@pytest.mark.two_servers
def test_a_users_message_is_not_mistaken_for_such_a_request(world: World, agent: Agent) -> None:
    for text in (
        "### Task:\nWrite a title for my essay.\n!say ok",
        "You are a title generator. Make a title.\n!say ok",
    ):
        agent.ask(text)
        assert any(line.startswith(f"user: {text[:20]}") for line in agent.story())
    assert len(agent.state()["message_ids"]) > 4
