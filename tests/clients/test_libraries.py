"""Agents of libraries read a file, through both APIs; some of them, and instructor, answer in forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.agents import answer_of
from tests.clients.process import Scratch
from tests.clients.reading import check_that_it_reads
from tests.log_lines import turn_lines
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

# Programs that speak the Responses API.
RESPONSES = (
    "agents_node",
    "agents_python",
    "langchain_agent",
    "pydantic_ai_agent",
    "responses_node",
    "responses_python",
    "vercel_responses",
)


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", ["langchain_agent", "pydantic_ai_agent", "vercel_ai"])
def test_the_library_reads_a_file_and_answers_with_its_word(
    agent: Agent, scratch: Scratch, program: str, how: str
) -> None:
    check_that_it_reads(program, how, agent, scratch)


@pytest.mark.each_loop
@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", RESPONSES)
def test_the_library_does_the_same_through_the_responses_api(
    agent: Agent, scratch: Scratch, program: str, how: str
) -> None:
    check_that_it_reads(program, how, agent, scratch, "responses")


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize(
    ("program", "script"),
    [
        ("instructor_schemas", '!call TOOL* {"value": NUMBER}'),
        ("langchain_schemas", '!call AnswerNUMBER* {"value": NUMBER}'),
        ("pydantic_ai_schemas", '!call final_result* {"valueNUMBER": NUMBER}'),
    ],
)
def test_twenty_forms_of_structured_output_in_turn_wait_for_nothing(
    agent: Agent, scratch: Scratch, tmp_path: Path, program: str, script: str, how: str
) -> None:
    prompt = f"Answer.\n{script}"
    settings = {"BRIDGE_DATA_DIR": str(tmp_path / "data"), "BRIDGE_TOOL_WAIT": "30"}
    with agent.world.start_bridge(**settings) as bridge:
        url = f"{bridge.url}/v1"
        answer = answer_of(program, how, prompt, url=url, model=agent.name, scratch=scratch, say=say, seconds=400)
    assert answer == str([*range(20)])
    turns = [line for line in turn_lines(agent.world.log) if line["model"] == agent.name]
    assert [line["outcome"] for line in turns] == ["tool_calls"] * 20
    assert not any("result" in line["waited_for"] for line in turns)
