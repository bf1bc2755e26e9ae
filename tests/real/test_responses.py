"""The scenarios of tool turns through the Responses API: the model is shown the same as through Chat Completions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from openai import BadRequestError

from tests.real import (
    test_conversations,
    test_given_up_calls,
    test_odd_calls,
    test_parallel_calls,
    test_results,
    test_tool_turns,
)
from tests.real.scenarios import Scenario, play, scenarios_in, shown_in_a_conversation
from tests.real.talk import ANSWER, calling
from tests.real.test_parallel_calls import noting
from tests.real.world import Agent, World

__all__ = ["noting"]

pytestmark = [pytest.mark.real, pytest.mark.strict]

SCENARIOS = scenarios_in(
    test_tool_turns, test_given_up_calls, test_parallel_calls, test_odd_calls, test_results, test_conversations
)


@pytest.mark.one_server
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_scenario_is_the_same_here(
    world: World, agent_type: str, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    play(scenario, request, "responses")


@pytest.mark.one_type
def test_a_large_result_is_the_same_here(agent: Agent) -> None:
    test_results.test_a_large_result_is_complete_up_to_the_part_that_letta_shows(
        replace(agent, api="responses"), 1_000_000
    )


@pytest.mark.two_servers
def test_tools_of_other_kinds_come_back_in_the_words_of_the_client(world: World, agent: Agent) -> None:
    """Only the new items are sent, after the id of the response before."""
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    read = {"type": "function", "name": "read", "parameters": parameters}
    tools: list[Any] = [
        {"type": "web_search"},
        {"type": "custom", "name": "patch", "description": "Changes files.", "format": {"type": "text"}},
        {"type": "namespace", "name": "files", "description": "Works with files.", "tools": [read]},
    ]
    script = f"Go.\n{calling('patch*', input='*** Begin Patch')}\n!next\n{calling('files__read*', path='a')}\n{ANSWER}"
    with world.openai() as client:
        ask = partial(client.responses.create, model=agent.name, tools=tools)
        first = ask(input=script)
        (patch,) = (item for item in first.output if item.type == "custom_tool_call")
        assert (patch.name, patch.input) == ("patch", "*** Begin Patch")
        done: Any = {"type": "custom_tool_call_output", "call_id": patch.call_id, "output": "Done."}
        second = ask(input=[done], previous_response_id=first.id)
        (call,) = (item for item in second.output if item.type == "function_call")
        assert (call.name, call.namespace, call.arguments) == ("read", "files", '{"path": "a"}')
        found: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "swordfish"}
        assert ask(input=[found], previous_response_id=second.id).output_text == "swordfish"
        with pytest.raises(BadRequestError) as refused:
            ask(input="Once more.", previous_response_id=first.id)
    assert refused.value.code == "previous_response_not_newest"


@pytest.mark.two_servers
def test_the_model_is_shown_the_same_through_both_apis(world: World, agent_type: str, stream: bool) -> None:
    shown = partial(shown_in_a_conversation, world, agent_type, stream, system="Be short.")
    assert shown("responses") == shown("chat_completions")
