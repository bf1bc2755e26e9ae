"""OpenAI's own packages for Python and for Node: they read a file through a tool and answer with its content."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessage

from testbed.versions import agent_types
from tests.clients.process import Scratch
from tests.clients.reading import check_that_it_reads
from tests.real.talk import story_of, tool
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.clients, pytest.mark.two_servers]


@pytest.fixture
def agent(world: World) -> Iterator[Agent]:
    """An agent of the newest type. The packages differ, not the agents."""
    world.model.clear()
    made = world.agent(agent_types(world.version)[-1])
    yield made
    made.delete()
    assert not world.model.refusals


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", ["openai_python", "openai_node"])
def test_the_package_reads_a_file_and_answers_with_its_word(
    agent: Agent, tmp_path: Path, program: str, how: str
) -> None:
    check_that_it_reads(program, how, agent, Scratch.below(tmp_path))


def test_ten_calls_in_a_row_get_their_results(world: World, agent_type: str, stream: bool) -> None:
    world.model.clear()
    agent = world.agent(agent_type)
    doubling = tool("double", "Doubles a number.", number={"type": "integer"})
    messages: list[Any] = [{"role": "user", "content": script_of([2**power for power in range(10)])}]
    with world.openai() as client:
        for _ in range(10):
            message = completed(client, agent, messages, doubling, stream)
            (call,) = message.tool_calls or ()
            assert call.type == "function"
            doubled = 2 * json.loads(call.function.arguments)["number"]
            messages += [message, {"role": "tool", "tool_call_id": call.id, "content": str(doubled)}]
        assert completed(client, agent, messages, doubling, stream).content == "1024"
    story = story_of(agent, [doubling])
    assert [line for line in story if line.startswith("result of double")] == [
        f"result of double: {2 ** (power + 1)}" for power in range(10)
    ]
    assert len({message["tool_call_id"] for message in messages[2::2]}) == 10
    agent.delete()
    assert not world.model.refusals


def script_of(numbers: Sequence[int]) -> str:
    calls = [f'!call double {{"number": {number}}}\n!next' for number in numbers]
    return "\n".join(["Double it.", *calls, "!answer"])


def completed(
    client: OpenAI, agent: Agent, messages: Sequence[Any], offered: Json, stream: bool
) -> ChatCompletionMessage:
    asked: Any = {"model": agent.name, "messages": messages, "tools": [offered]}
    if not stream:
        return client.chat.completions.create(**asked).choices[0].message
    with client.chat.completions.stream(**asked) as events:
        return events.get_final_completion().choices[0].message
