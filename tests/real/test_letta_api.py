"""Letta's own API through the bridge: programs of letta-client bring their tools, and get answers of its types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.clients.agents import answer_through_letta
from tests.clients.process import Scratch
from tests.clients.task import call, script, secret_in
from tests.letta_checker import calls_of, check_answer, read_events
from tests.real.conftest import say
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.one_type]

# How letta-client sends a message, and what its requests have beside the messages and the tools.
STYLES: dict[str, Json] = {
    "create": {},
    "stream": {"stream_tokens": True},
    "streaming": {"streaming": True},
    "conversation": {},
}
STYLED = pytest.mark.parametrize("how", STYLES)
READ_FILE = {
    "name": "read_file",
    "description": "Reads a text file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


@pytest.fixture(scope="module")
def letta_url(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = str(tmp_path_factory.mktemp("data"))
    with world.start_bridge(BRIDGE_LETTA_API="all", BRIDGE_DATA_DIR=data) as bridge:
        yield f"{bridge.url}/letta"


@STYLED
@pytest.mark.one_server
def test_a_program_in_python_reads_a_file_and_answers_with_its_word(
    agent: Agent, letta_url: str, tmp_path: Path, how: str
) -> None:
    check_that_it_reads("letta_client_python", how, agent, letta_url, Scratch.below(tmp_path))


@pytest.mark.clients
@pytest.mark.two_servers
@STYLED
@pytest.mark.one_server
def test_a_program_on_node_reads_a_file_and_answers_with_its_word(
    agent: Agent, letta_url: str, tmp_path: Path, how: str
) -> None:
    check_that_it_reads("letta_client_node", how, agent, letta_url, Scratch.below(tmp_path))


def check_that_it_reads(program: str, how: str, agent: Agent, url: str, scratch: Scratch) -> None:
    word = secret_in(scratch.work / "notes.txt")
    prompt = f"Which word is in notes.txt?\n{script(call('read_file', path='notes.txt'))}"
    answer = answer_through_letta(program, how, prompt, url=url, agent_id=agent.id, scratch=scratch, say=say)
    assert word in answer
    assert [line for line in agent.story() if line.startswith("result of read_file") and word in line]


@STYLED
@pytest.mark.one_server
def test_the_answers_have_the_types_of_letta_client(agent: Agent, letta_url: str, how: str) -> None:
    program = Program(letta_url, agent.id, how)
    prompt = f"Which word is in notes.txt?\n{script(call('read_file', path='notes.txt'))}"
    ((call_id, (name, arguments)),) = calls_of(program.said({"role": "user", "content": prompt})).items()
    assert (name, json.loads(arguments)) == ("read_file", {"path": "notes.txt"})

    result = {"type": "tool", "tool_call_id": call_id, "tool_return": "The word is milk.", "status": "success"}
    said = program.said({"type": "approval", "approvals": [result]})
    assert calls_of(said) == {}
    assert "The word is milk." in "".join(one["content"] for one in said if one["message_type"] == "assistant_message")
    told = [one["tool_call_id"] for one in said if one["message_type"] == "tool_return_message"]
    # Letta leaves out the client's own result only where it sends tokens.
    assert call_id not in told if how == "stream" else told[0] == call_id


@dataclass
class Program:
    """A program whose answers are checked byte by byte."""

    url: str
    agent_id: str
    how: str
    conversation: str = ""

    def said(self, message: Json) -> list[Json]:
        """Sends a message with the tool; returns the messages of the answer, of a stream all its events."""
        body = {"messages": [message], "client_tools": [READ_FILE], **STYLES[self.how]}
        answer = self._post(self._path(), json=body)
        if self.how == "create":
            check_answer(answer.json())
            messages: list[Json] = answer.json()["messages"]
            return messages
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        return read_events(answer.content)

    def _path(self) -> str:
        if self.how == "conversation":
            self.conversation = self.conversation or self._new_conversation()
            return f"conversations/{self.conversation}/messages"
        return f"agents/{self.agent_id}/messages{'/stream' if self.how == 'stream' else ''}"

    def _new_conversation(self) -> str:
        return str(self._post("conversations/", json={}, params={"agent_id": self.agent_id}).json()["id"])

    def _post(self, path: str, **more: Any) -> requests.Response:
        answer = requests.post(f"{self.url}/v1/{path}", timeout=120, **more)
        assert answer.status_code == 200, answer.text
        return answer
