"""Plays the tests for real servers that only need an agent once more through another API."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.real.talk import ANSWER, CLOCK, WEATHER, Talk, calling
from tests.real.world import Agent, Api, World
from tests.sse_checker import Json

Scenario = Callable[..., None]

# The fixtures with an agent that these tests may need.
AGENTS = {"agent", "remembering", "noting"}


def scenarios_in(*modules: ModuleType) -> list[Scenario]:
    """Returns the tests of these modules that need only an agent, and perhaps whether to stream."""
    found = [one for module in modules for name, one in vars(module).items() if name.startswith("test_")]
    return [one for one in found if inspect.isfunction(one) and _agent_of(one) and not _others(one)]


def _agent_of(scenario: Scenario) -> str:
    """Returns the name of the scenario's agent, "" if it has none."""
    return next((name for name in inspect.signature(scenario).parameters if name in AGENTS), "")


def _others(scenario: Scenario) -> set[str]:
    return set(inspect.signature(scenario).parameters) - {_agent_of(scenario), "stream"}


def play(scenario: Scenario, request: pytest.FixtureRequest, api: Api) -> None:
    """Plays the scenario through this API, streamed if it can be."""
    agent: Agent = request.getfixturevalue(_agent_of(scenario))
    more: dict[str, Any] = {"stream": True} if "stream" in inspect.signature(scenario).parameters else {}
    scenario(**{_agent_of(scenario): replace(agent, api=api)}, **more)


def shown_in_a_conversation(world: World, agent_type: str, stream: bool, api: Api, **fields: Any) -> list[Any]:
    """Returns what the model was shown in each step of a conversation with two calls: story, tools, tool choice. Letta
    has the tools of an agent in any order.
    """
    agent = replace(world.agent(agent_type), api=api)
    try:
        before = len(world.model.requests())
        talk = Talk(agent, WEATHER, CLOCK, stream=stream, **fields)
        talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n{calling('clock*')}\n{ANSWER}")
        talk.give("12 degrees")
        talk.give("noon", then="And now?")
        requests = world.model.requests()[before:]
        return [(request.story(), _by_name(request.body.get("tools")), request.tool_choice) for request in requests]
    finally:
        agent.delete()


def _by_name(tools: list[Json] | None) -> list[Json]:
    return sorted(tools or (), key=lambda tool: str(tool["function"]["name"]))
