"""A client that goes away before its answer came."""

from __future__ import annotations

import threading

import pytest
import requests

from tests.real.world import Agent, World

pytestmark = pytest.mark.real


@pytest.mark.fault("clients that hang up")
def test_its_run_is_cancelled_where_that_works_and_the_agent_is_free(world: World, agent: Agent, stream: bool) -> None:
    agent.ask("Hello")
    world.proxy.clear()
    messages = [{"role": "user", "content": "!delay 3\n!say too late"}]
    body = {"model": agent.name, "messages": messages, "stream": stream}
    with pytest.raises(requests.Timeout):
        requests.post(f"{world.bridge.url}/v1/chat/completions", json=body, timeout=1)
    assert agent.ask("!say here I am").text == "here I am"
    cancels = world.proxy.calls("POST", "/v1/agents/*/messages/cancel")
    assert len(cancels) == (1 if world.at_least("0.14.0") else 0)
    # Where the run could not be stopped, it ended before the next turn began.
    told = [line for line in agent.story() if "late" in line or "here I am" in line]
    assert told[-1] == "user: !say here I am"


@pytest.mark.two_servers
@pytest.mark.fault("clients that hang up")
def test_a_turn_that_still_waits_for_its_agent_never_begins(world: World, agent: Agent) -> None:
    world.proxy.clear()
    first = threading.Thread(target=agent.ask, args=("!delay 3\n!say slow",))
    first.start()
    world.proxy.wait_for_calls(1, "POST", "/v1/agents/*/messages/stream", ended=False)
    queued = {"model": agent.name, "messages": [{"role": "user", "content": "never mind"}]}
    with pytest.raises(requests.Timeout):
        requests.post(f"{world.bridge.url}/v1/chat/completions", json=queued, timeout=1)
    first.join()
    assert agent.ask("!say next").text == "next"
    assert "user: never mind" not in agent.story()
