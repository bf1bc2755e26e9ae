"""Turns without client tools, on every server and agent type."""

from __future__ import annotations

import time

import openai
import pytest
import requests

from bridge.directory import LIST_KEPT_SECONDS
from tests.real.talk import MEMORY_TOOL
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

# Each worker asks what the server can do, and again from time to time.
LEARNING = ("/v1/health/", "/openapi.json")

ODD_TEXT = 'He said "hi" \\ café 😀 50% <b> {"status": "OK"} \u2028 end'
# How many agents Letta lists by default.
LETTAS_PAGE = 50


def test_the_agent_answers(agent: Agent, stream: bool) -> None:
    reply = agent.ask("Hello there", stream=stream)
    assert reply.text == "You said: Hello there"
    assert reply.finish_reason == "stop"


@pytest.mark.two_servers
def test_only_what_the_agent_has_not_heard_is_sent(agent: Agent, stream: bool) -> None:
    agent.ask("one")
    transcript = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "You said: one"},
        {"role": "user", "content": "two"},
    ]
    assert agent.ask(messages=transcript, stream=stream).text == "You said: two"
    story = agent.story()
    assert [line for line in story if line.startswith("user: ")] == ["user: one", "user: two"]


@pytest.mark.one_type
def test_several_new_messages_arrive_in_order(agent: Agent) -> None:
    messages = [{"role": "user", "content": "first"}, {"role": "user", "content": [{"type": "text", "text": "second"}]}]
    agent.ask(messages=messages)
    assert [line for line in agent.story() if line.startswith("user:")] == ["user: first", "user: second"]


def test_text_is_exact_in_both_directions(agent: Agent, stream: bool) -> None:
    reply = agent.ask(f"{ODD_TEXT}\n!answer_is_below\n!say {ODD_TEXT}", stream=stream)
    assert reply.text == ODD_TEXT
    assert any(ODD_TEXT in line for line in agent.story())


@pytest.mark.one_type
def test_a_long_text_is_complete(agent: Agent, stream: bool) -> None:
    long = " ".join(f"word{number}" for number in range(3000))
    assert agent.ask(f"!say {long}", stream=stream).text == long


def test_reasoning_is_separate_from_the_answer(agent: Agent, stream: bool) -> None:
    reply = agent.ask("!think I ponder\n!say Done pondering", stream=stream)
    if agent.type == "letta_v1_agent":
        assert "Done pondering" in reply.text
    else:
        assert reply.text == "Done pondering"
        assert reply.message["reasoning_content"] == "I ponder"


def test_usage_counts_the_last_prompt_not_the_sum(world: World, agent_type: str, stream: bool) -> None:
    world.model.clear()
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    script = f'!call {MEMORY_TOOL} {{"label": "human", "content": "likes tea"}}\n!next\n!say Noted'
    reply = agent.ask(script, stream=stream)
    prompts = [one.reply["usage"]["prompt_tokens"] for one in world.model.requests()]
    assert len(prompts) == 2
    assert reply.usage is not None
    # Servers before 0.8, and 0.12 to 0.15, report sums only. The bridge reports their mean.
    knows_steps = world.at_least("0.8.0") and not world.version.startswith(("0.12.", "0.13.", "0.14.", "0.15."))
    expected = prompts[-1] if knows_steps else sum(prompts) // 2
    assert reply.usage["prompt_tokens"] == expected
    agent.delete()


@pytest.mark.one_type
def test_the_client_does_not_see_calls_of_the_agents_own_tools(world: World, agent_type: str, stream: bool) -> None:
    world.model.clear()
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    script = f'!call {MEMORY_TOOL} {{"label": "human", "content": "likes tea"}}\n!next\n!say Noted'
    reply = agent.ask(script, stream=stream)
    assert reply.text == "Noted"
    assert reply.finish_reason == "stop"
    assert reply.calls == []
    assert "likes tea" in dict(agent.fingerprint()["blocks"])["human"]
    assert not world.model.refusals
    agent.delete()


@pytest.mark.one_type
def test_a_system_prompt_applies_at_once_and_only_while_it_is_sent(agent: Agent, stream: bool) -> None:
    before = agent.fingerprint()
    agent.ask("Hello", system="Speak like ALPHA.", stream=stream)
    assert "Speak like ALPHA." in system_message(agent)
    agent.ask("Hello", system="Speak like BETA. " * 3000, stream=stream)
    assert "BETA" in system_message(agent)
    assert "ALPHA" not in system_message(agent)
    agent.ask("Hello", stream=stream)
    assert "BETA" not in system_message(agent)
    assert "client_instructions" not in system_message(agent)
    assert agent.fingerprint() == before


@pytest.mark.one_type
def test_an_unchanged_system_prompt_costs_no_call(world: World, agent: Agent) -> None:
    agent.ask("Hello", system="Speak like ALPHA.")
    world.proxy.clear()
    agent.ask("Hello", system="Speak like ALPHA.", model=agent.id)
    calls = [call for call in world.proxy.calls() if call.path not in LEARNING]
    assert [(call.method, call.path.rsplit("/", 1)[-1]) for call in calls] == [("GET", agent.id), ("POST", "stream")]


@pytest.mark.one_type
def test_the_agents_own_block_with_our_label_stays_unchanged(world: World, agent_type: str) -> None:
    agent = world.agent(agent_type, memory_blocks=[{"label": "client_instructions", "value": "my own"}])
    agent.ask("Hello", system="Speak like GAMMA.")
    assert "GAMMA" in system_message(agent)
    assert dict(agent.fingerprint()["blocks"])["client_instructions"] == "my own"
    agent.ask("Hello")
    assert agent.fingerprint()["blocks"] == [("client_instructions", "my own")]
    agent.delete()


@pytest.mark.one_type
def test_a_failing_model_is_a_bad_gateway(agent: Agent, stream: bool) -> None:
    reply = agent.ask("!status 500 it broke", stream=stream)
    assert reply.error is not None
    assert reply.status == 502
    assert reply.error["type"] == "server_error"
    agent.world.model.take_refusals()
    assert agent.ask("!say I am back", stream=stream).text == "I am back"


@pytest.mark.two_servers
def test_models_are_listed_by_name_and_found_by_name_or_id(world: World, agent: Agent) -> None:
    listed = models(world)
    assert agent.name in listed
    assert agent.id not in listed
    assert world.openai().models.retrieve(agent.name).id == agent.name
    assert world.openai().models.retrieve(agent.id).id == agent.name


@pytest.mark.two_servers
def test_agents_with_the_same_name_are_listed_with_digits_of_their_ids(
    world: World, agent: Agent, agent_type: str
) -> None:
    twin = world.agent(agent_type, name=agent.name)
    listed = models(world)
    names = [f"{agent.name}@{one.id.removeprefix('agent-')[:8]}" for one in (agent, twin)]
    assert set(names) <= listed
    assert agent.name not in listed
    refused = agent.ask("Hello")
    assert refused.status == 404
    assert twin.id in refused.error["message"]
    assert names[0] in refused.error["message"]
    assert agent.ask("Hello", model=names[0]).text == "You said: Hello"
    twin.delete()
    assert agent.ask("Hello").text == "You said: Hello"


@pytest.mark.two_servers
def test_all_agents_are_listed_when_they_fill_more_than_one_page(world: World) -> None:
    made = [world.agent("memgpt_agent") for _ in range(LETTAS_PAGE + 1)]
    with world.openai() as client:
        listed = {model.id for model in client.models.list()}
    for agent in made:
        agent.delete()
    assert {agent.name for agent in made} <= listed


@pytest.mark.two_servers
def test_an_unknown_model_is_not_found(world: World, stream: bool) -> None:
    body = {"model": "nobody", "messages": [{"role": "user", "content": "Hello"}], "stream": stream}
    answer = requests.post(f"{world.bridge.url}/v1/chat/completions", json=body, timeout=30)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"
    unknown = "agent-00000000-0000-4000-8000-000000000000"
    with pytest.raises(openai.NotFoundError):
        world.openai().models.retrieve(unknown)


@pytest.mark.two_servers
@pytest.mark.parametrize("strict", [False, True])
def test_the_openai_package_lists_and_chats(world: World, agent: Agent, strict: bool) -> None:
    client = world.openai(_strict_response_validation=strict)
    time.sleep(LIST_KEPT_SECONDS)
    assert agent.name in {model.id for model in client.models.list()}
    messages = [{"role": "user", "content": "Hello"}]
    whole = client.chat.completions.create(model=agent.name, messages=messages)
    assert whole.choices[0].message.content == "You said: Hello"
    parts = client.chat.completions.create(model=agent.name, messages=messages, stream=True)
    text = "".join(part.choices[0].delta.content or "" for part in parts)
    assert text == "You said: Hello"


def models(world: World) -> set[str]:
    """Lists the models after the bridge's own copy of the list has expired."""
    time.sleep(LIST_KEPT_SECONDS)
    return {model.id for model in world.openai().models.list()}


def system_message(agent: Agent) -> str:
    return str(agent.world.model.last_request().messages[0]["content"])
