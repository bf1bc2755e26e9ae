"""What a client is told when it asks for more than the agent's model takes."""

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
def test_too_many_tools_for_the_model_are_the_clients_mistake(world: World, agent: Agent) -> None:
    part = unique("many")
    many = [tool(f"{part}_{number}") for number in range(140)]
    reply = agent.ask("Hello", tools=many, stream=True)
    world.model.clear()
    assert reply.error is not None
    told = (reply.status, reply.error["code"])
    # Older servers keep to themselves what the model's provider said.
    assert told == ((400, "too_many_tools") if world.at_least("0.11.0") else (502, "letta_error"))
    assert agent.ask("Hello", tools=many[:2]).text == "You said: Hello"
