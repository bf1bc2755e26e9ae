"""The scenarios of tool turns through the Responses API: the model is shown the same as through Chat Completions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from tests.real import (
    test_conversations,
    test_given_up_calls,
    test_odd_calls,
    test_parallel_calls,
    test_results,
    test_tool_turns,
)
from tests.real.talk import ANSWER, CLOCK, WEATHER, Talk, calling
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict]


def _scenarios(*modules: ModuleType) -> list[Callable[..., None]]:
    """Returns the tests of these modules that need only an agent, and perhaps whether to stream."""
    found = [one for module in modules for name, one in vars(module).items() if name.startswith("test_")]
    return [one for one in found if inspect.isfunction(one) and _parameters(one) <= {"agent", "stream"}]


def _parameters(test: Callable[..., None]) -> set[str]:
    return set(inspect.signature(test).parameters)


SCENARIOS = _scenarios(
    test_tool_turns, test_given_up_calls, test_parallel_calls, test_odd_calls, test_results, test_conversations
)


@pytest.mark.one_type
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_scenario_is_the_same_here(agent: Agent, scenario: Callable[..., None]) -> None:
    more: dict[str, Any] = {"stream": True} if "stream" in _parameters(scenario) else {}
    scenario(agent=replace(agent, api="responses"), **more)


def test_the_model_is_shown_the_same_through_both_apis(world: World, agent_type: str, stream: bool) -> None:
    assert _shown(world, agent_type, stream, "responses") == _shown(world, agent_type, stream, "chat_completions")


def _shown(world: World, agent_type: str, stream: bool, api: Any) -> list[Any]:
    """Returns what the model was shown in each step of a conversation with two calls: story, tools, tool choice."""
    agent = replace(world.agent(agent_type), api=api)
    try:
        before = len(world.model.requests())
        talk = Talk(agent, WEATHER, CLOCK, stream=stream, system="Be short.")
        talk.say(f"Weather?\n{calling(city='Oslo')}\n!next\n{calling('clock*')}\n{ANSWER}")
        talk.give("12 degrees")
        talk.give("noon", then="And now?")
        requests = world.model.requests()[before:]
        return [(request.story(), request.body.get("tools"), request.tool_choice) for request in requests]
    finally:
        agent.delete()
