"""Requests for more than the agent's model accepts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.real.toolsets import tool, unique
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.two_servers]


@pytest.fixture
def model_of_128_tools(world: World) -> Iterator[None]:
    before = world.model.limits
    world.model.limits = replace(before, max_tools=128)
    yield
    world.model.limits = before


@pytest.mark.usefixtures("model_of_128_tools")
def test_too_many_tools_for_the_model_are_an_error_of_the_client_without_the_search(world: World, agent: Agent) -> None:
    part = unique("many")
    many = [tool(f"{part}_{number}") for number in range(140)]
    assert agent.ask("Hello", tools=many).text == "You said: Hello"
    with world.start_bridge(WEB_CONCURRENCY="1", BRIDGE_TOOL_SEARCH="0") as bridge:
        reply = agent.ask("Hello", tools=many, stream=True, bridge=bridge)
    world.model.clear()
    assert reply.error is not None
    answer = (reply.status, reply.error["code"])
    # Older servers do not pass on the error of the model's provider.
    assert answer == ((400, "too_many_tools") if world.at_least("0.11.0") else (502, "letta_error"))
    assert agent.ask("Hello", tools=many[:2]).text == "You said: Hello"
