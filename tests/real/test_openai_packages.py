"""OpenAI's own packages, for Python and for Node: they read a file through a tool and answer with what it says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.versions import agent_types
from tests.clients.process import Scratch
from tests.clients.reading import check_that_it_reads
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.clients]


@pytest.fixture
def agent(world: World) -> Iterator[Agent]:
    """An agent of the newest type alone: it is the packages that differ."""
    world.model.clear()
    made = world.agent(agent_types(world.version)[-1])
    yield made
    made.delete()
    assert not world.model.refusals


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", ["openai_python", "openai_node"])
def test_it_reads_a_file_and_answers_with_its_word(agent: Agent, tmp_path: Path, program: str, how: str) -> None:
    check_that_it_reads(program, how, agent, Scratch.below(tmp_path))
