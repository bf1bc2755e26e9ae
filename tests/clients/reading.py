"""The task of every library: read a file through a tool, and answer with the word in it."""

from __future__ import annotations

from testbed.proxy import FaultProxy
from tests.clients.agents import answer_of
from tests.clients.process import Scratch
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.clients.wire import Wire
from tests.real.conftest import say
from tests.real.world import Agent


def check_that_it_reads(program: str, how: str, agent: Agent, scratch: Scratch, api: str = "chat_completions") -> None:
    """Expects two answered requests, the word in the answer, and the word in the tool's return that the model saw."""
    word = secret_in(scratch.work / "notes.txt")
    teach(agent, call("read_file", path="notes.txt"), ANSWER)
    with FaultProxy(agent.world.bridge.url) as proxy:
        wire = Wire(proxy)
        prompt = "Which word is in notes.txt?"
        answer = answer_of(program, how, prompt, url=wire.url, model=agent.name, scratch=scratch, say=say, api=api)
        assert word in answer
        assert (len(wire.asked), wire.beside, wire.failures()) == (2, [], [])
    assert any(line.startswith("result of read_file") and word in line for line in agent.story())
