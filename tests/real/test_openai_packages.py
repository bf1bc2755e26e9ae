"""OpenAI's own packages, for Python and for Node: they read a file through a tool and answer with what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.proxy import FaultProxy
from testbed.versions import agent_types
from tests.clients.agents import answer_of
from tests.clients.process import Scratch
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.clients.wire import Wire
from tests.real.conftest import say
from tests.real.world import World

pytestmark = [pytest.mark.real, pytest.mark.clients]


@pytest.mark.parametrize("how", ["whole", "stream"])
@pytest.mark.parametrize("program", ["openai_python", "openai_node"])
def test_an_agent_reads_a_file_and_answers_with_its_word(world: World, tmp_path: Path, program: str, how: str) -> None:
    agent = world.agent(agent_types(world.version)[-1])
    scratch = Scratch.below(tmp_path)
    word = secret_in(scratch.work / "notes.txt")
    teach(agent, call("read_file", path="notes.txt"), ANSWER)
    with FaultProxy(world.bridge.url) as proxy:
        wire = Wire(proxy)
        prompt = "Which word stands in notes.txt?"
        answer = answer_of(program, how, prompt, url=wire.url, model=agent.name, scratch=scratch, say=say)
        assert word in answer
        assert len(wire.asked) == 2
        assert wire.failures() == []
    agent.delete()
    assert not world.model.refusals
