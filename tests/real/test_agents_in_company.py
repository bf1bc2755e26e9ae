"""Agents that are busy outside of the bridge: in other conversations, or with a companion that Letta runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import requests

from bridge.interception.stored_messages import LOOK_BACK
from testbed.model import ScriptedModel
from testbed.versions import V1_AGENT
from tests.real.talk import WEATHER, Talk, ask_weather
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.one_type]

# More messages than the bridge looks back over.
MANY = LOOK_BACK + 1


@pytest.mark.two_servers
def test_a_call_is_found_after_many_messages_in_another_conversation(world: World, agent: Agent) -> None:
    agent.ask("Hello")  # a bridge that does not know the agent waits for the runs of conversations, which stay active
    conversations = f"{world.server.base_url}/v1/conversations/"
    own = agent.state()["message_ids"]
    begun = requests.post(conversations, params={"agent_id": agent.id}, json={}, timeout=60)
    if not begun.ok or not elsewhere(conversations, begun.json()["id"], 1).ok:
        assert agent.type != V1_AGENT or not world.at_least("0.16.2"), begun.text
        return
    if agent.state()["message_ids"] != own:  # 0.16.2 puts all conversations of these agents into one context
        assert agent.type != V1_AGENT
        return
    talk = Talk(agent, WEATHER)
    assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
    answer = elsewhere(conversations, begun.json()["id"], MANY)
    assert answer.ok, answer.text
    assert talk.give("12 degrees").text == "12 degrees"
    assert agent.ask("bye").text == "You said: bye"


def elsewhere(conversations: str, conversation_id: str, times: int) -> requests.Response:
    """Sends that many messages in one request, because each request takes Letta some seconds."""
    words = [{"role": "user", "content": f"Elsewhere {number}."} for number in range(times)]
    said = {"messages": words, "streaming": False}
    return requests.post(f"{conversations}{conversation_id}/messages", json=said, timeout=60)


@pytest.fixture
def quiet(world: World) -> Iterator[World]:
    """The server with another model: a companion goes on after the end of its test."""
    with ScriptedModel() as model:
        yield replace(world, model=model)


@pytest.mark.two_servers
def test_agents_with_a_sleep_time_companion_get_their_results(quiet: World, agent_type: str) -> None:
    agent = quiet.agent(agent_type, enable_sleeptime=True)
    if agent_type != V1_AGENT and quiet.at_least("0.16.2"):
        said = {"messages": [{"role": "user", "content": "Hello"}], "stream_tokens": False}
        own = requests.post(f"{quiet.server.base_url}/v1/agents/{agent.id}/messages/stream", json=said, timeout=60)
        assert "unexpected keyword argument" in own.text, "Letta can stream such agents here"
        reply = agent.ask("Hello")
        assert reply.error is not None
        assert reply.error["code"] == "model_failed"
        return
    if agent_type == V1_AGENT and not quiet.at_least("0.13.0"):
        assert not agent.ask("Hello").text, "0.12 lets such an agent say something"
        return
    talk = Talk(agent, WEATHER)
    for _ in range(2):
        assert talk.say(ask_weather()).calls == [("weather", {"city": "Oslo"})]
        assert talk.give("12 degrees").text == "12 degrees"
    # Letta 0.16.1 itself refuses to delete an agent whose companion has run, so it stays.


@pytest.mark.full
def test_lettas_conversations_that_run_at_once_lose_each_others_notes(world: World, remembering: Agent) -> None:
    """So the chats of an agent are not kept in conversations, though two of these answer at once (docs/chats.md)."""
    agent = remembering
    conversations = f"{world.server.base_url}/v1/conversations/"
    made = [requests.post(conversations, params={"agent_id": agent.id}, json={}, timeout=60) for _ in range(2)]
    if agent.type != V1_AGENT or not world.at_least("0.16.2"):  # no conversations, or none with contexts of their own
        return
    ann, bob = (f"{conversations}{one.json()['id']}/messages" for one in made)
    note = '!call core_memory_append {"label": "human", "content": "%s"}\n!next\n!say Noted.'
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(send, ann, f"I am Ann.\n!delay 4\n{note % 'Ann likes milk.'}")
        world.model.wait_for_requests(containing="I am Ann.")
        send(bob, f"I am Bob.\n{note % 'Bob likes tea.'}")
        assert "Bob likes tea." in memory(agent)
        assert not slow.done()
        slow.result()
    assert "Ann likes milk." in memory(agent)
    assert "Bob likes tea." not in memory(agent), "Letta keeps both notes now: conversations could be used"


def send(messages: str, text: str) -> None:
    body = {"messages": [{"role": "user", "content": text}]}
    requests.post(messages, json=body, timeout=60).raise_for_status()


def memory(agent: Agent) -> str:
    return str(agent.state()["memory"]["blocks"])
