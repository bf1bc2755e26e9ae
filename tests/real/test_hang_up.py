"""A client that closes its connection before the answer has come."""

from __future__ import annotations

import threading
import time

import pytest
import requests

from tests.real.talk import MEMORY_TOOL
from tests.real.world import Agent, World
from tests.services import asking

pytestmark = pytest.mark.real


@pytest.mark.fault("clients that hang up")
@pytest.mark.two_servers
def test_without_a_wait_for_repeats_the_run_is_cancelled_where_letta_can_do_that_and_the_agent_is_free(
    world: World, agent: Agent, stream: bool
) -> None:
    agent.ask("Hello")
    world.proxy.clear()
    messages = [{"role": "user", "content": "!delay 2\n!say too late"}]
    with world.start_bridge(BRIDGE_REPEAT_WAIT="0") as bridge:
        with asking(bridge, {"model": agent.name, "messages": messages, "stream": stream}):
            world.model.wait_for_requests(1, containing="too late")
        assert agent.ask("!say here I am", bridge=bridge).text == "here I am"
    cancels = world.proxy.calls("POST", "/v1/agents/*/messages/cancel")
    assert len(cancels) == (1 if world.at_least("0.14.0") else 0)
    # If the run could not be stopped, it ended before the next turn began.
    heard = [line for line in agent.story() if "late" in line or "here I am" in line]
    assert heard[-1] == "user: !say here I am"


@pytest.mark.fault("clients that hang up")
@pytest.mark.two_servers
def test_a_person_who_stops_a_stream_in_the_middle_stops_the_run_where_letta_can_do_that(
    world: World, agent_type: str
) -> None:
    """The client is shown the agent's first thought; the second step of the model takes its time."""
    agent = world.agent(agent_type, tools=[MEMORY_TOOL])
    agent.ask("Hello")
    world.proxy.clear()
    own = f'!call {MEMORY_TOOL} {{"label": "human", "content": "tea"}}'
    text = f"Stop me.\n!think Hm.\n{own}\n!next\n!delay 5\n!say too late"
    body = {"model": agent.name, "messages": [{"role": "user", "content": text}], "stream": True}
    with requests.post(f"{world.bridge.url}/v1/chat/completions", json=body, timeout=60, stream=True) as answer:
        assert any(b"Hm" in line for line in answer.iter_lines())
        stopped = time.monotonic()
    if world.at_least("0.14.0"):
        world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/cancel", ended=False)
        assert time.monotonic() - stopped < 2.5
    assert agent.ask("!say here I am").text == "here I am"
    assert agent.story()[-1] == "user: !say here I am"
    agent.delete()


@pytest.mark.fault("clients that hang up")
@pytest.mark.one_server
def test_a_turn_that_waits_for_its_agent_does_not_begin_without_its_client(world: World, agent: Agent) -> None:
    world.proxy.clear()
    first = threading.Thread(target=agent.ask, args=("!delay 2\n!say slow",))
    first.start()
    world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/stream", ended=False)
    queued = {"model": agent.name, "messages": [{"role": "user", "content": "never mind"}]}
    with pytest.raises(requests.Timeout):
        requests.post(f"{world.bridge.url}/v1/chat/completions", json=queued, timeout=0.5)
    first.join()
    assert agent.ask("!say next").text == "next"
    assert "user: never mind" not in agent.story()


@pytest.mark.fault("clients that hang up")
@pytest.mark.one_server
def test_a_client_that_leaves_before_letta_answers_its_message_frees_the_agent(world: World, agent: Agent) -> None:
    """A message of Letta's own API without client tools, which Letta answers when its model has answered."""
    agent.ask("Hello")
    world.proxy.clear()
    body = {"messages": [{"role": "user", "content": "!delay 3\n!say too late"}]}
    with world.start_bridge(BRIDGE_LETTA_API="all") as bridge:
        with pytest.raises(requests.Timeout):
            requests.post(f"{bridge.url}/letta/v1/agents/{agent.id}/messages", json=body, timeout=1.5)
        assert agent.ask("!say here I am", bridge=bridge).text == "here I am"
    cancels = world.proxy.calls("POST", "/v1/agents/*/messages/cancel")
    assert len(cancels) == (1 if world.at_least("0.14.0") else 0)
    assert agent.story()[-1] == "user: !say here I am"
