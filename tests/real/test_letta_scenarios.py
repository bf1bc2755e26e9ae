"""The scenarios of tool turns through Letta's own API: the model is shown the same as through Chat Completions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.real import test_given_up_calls, test_odd_calls, test_parallel_calls, test_results, test_tool_turns
from tests.real.scenarios import Scenario, play, scenarios_in, shown_in_a_conversation
from tests.real.talk import WEATHER, Talk, ask_weather
from tests.real.test_parallel_calls import noting
from tests.real.world import Agent, World

__all__ = ["noting"]

pytestmark = [pytest.mark.real, pytest.mark.strict]

# What a client of this API can't say, and what is said in other words.
DIFFERENT = {
    "test_the_parts_of_a_result_become_one_text": "its parts are joined as Letta joins them",
    "test_a_result_that_belongs_to_no_call_is_refused_and_does_no_harm": "quoted in other words",
    "test_a_client_that_accepts_one_call_gets_one": "there is no `parallel_tool_calls`",
    "test_a_late_result_further_up_in_the_transcript_is_quoted_once": "there is no transcript",
}
SCENARIOS = [
    scenario
    for scenario in scenarios_in(
        test_tool_turns, test_results, test_parallel_calls, test_odd_calls, test_given_up_calls
    )
    if scenario.__name__ not in DIFFERENT
]


@pytest.mark.one_server
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_scenario_is_the_same_here(
    world: World, agent_type: str, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    play(scenario, request, "letta")


@pytest.mark.two_servers
def test_the_model_is_shown_the_same_through_both_apis(world: World, agent_type: str, stream: bool) -> None:
    through_letta, through_chat = (
        shown_in_a_conversation(world, agent_type, stream, api) for api in ("letta", "chat_completions")
    )
    assert through_letta == through_chat


@pytest.mark.one_type
def test_the_parts_of_a_result_become_one_text(agent: Agent) -> None:
    talk = Talk(replace(agent, api="letta"), WEATHER)
    talk.say(ask_weather())
    parts = [{"type": "text", "text": "12"}, {"type": "text", "text": "degrees"}]
    assert talk.give({"content": parts}).text == "12\ndegrees"
