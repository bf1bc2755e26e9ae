"""A client that closes its connection before the answer has come."""

from __future__ import annotations

import threading

import pytest
import requests

from tests.real.world import Agent, World
from tests.services import asking

pytestmark = pytest.mark.real


@pytest.mark.fault("clients that hang up")
def test_the_run_is_cancelled_where_letta_can_do_that_and_the_agent_is_free(
    world: World, agent: Agent, stream: bool
) -> None:
    agent.ask("Hello")
    world.proxy.clear()
    messages = [{"role": "user", "content": "!delay 2\n!say too late"}]
    with asking(world.bridge, {"model": agent.name, "messages": messages, "stream": stream}):
        world.model.wait_for_requests(1, containing="too late")
    assert agent.ask("!say here I am").text == "here I am"
    cancels = world.proxy.calls("POST", "/v1/agents/*/messages/cancel")
    assert len(cancels) == (1 if world.at_least("0.14.0") else 0)
    # If the run could not be stopped, it ended before the next turn began.
    heard = [line for line in agent.story() if "late" in line or "here I am" in line]
    assert heard[-1] == "user: !say here I am"


@pytest.mark.two_servers
@pytest.mark.fault("clients that hang up")
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
