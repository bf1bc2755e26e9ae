"""Requests of clients for titles, summaries, tags and follow-ups leave nothing in the agent."""

from __future__ import annotations

import json

import pytest
import requests

from testbed.proxy.calls import ProxiedCall
from tests.clients.open_webui import open_webui
from tests.clients.opencode import OpenCode
from tests.clients.process import Scratch
from tests.clients.qwen_code import QwenCode
from tests.clients.task import ANSWER, call, secret_in, teach, what_is_kept
from tests.clients.wire import Wire, first_words, last_words
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

COMPACTION = "You are the component that summarizes a conversation"


def heard(agent: Agent) -> str:
    """Returns all messages of the agent, as the server stores them."""
    return json.dumps(agent.world.letta("GET", f"/v1/agents/{agent.id}/messages", limit=200))


def send_again(agent: Agent, sent: ProxiedCall) -> requests.Response:
    """Sends a recorded request of the client to the bridge."""
    headers = {name: value for name, value in sent.headers.items() if name.lower() not in ("host", "connection")}
    return requests.post(agent.world.bridge.url + sent.path, data=sent.raw, headers=headers, timeout=60)


def test_opencode_gets_a_title(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    teach(agent, "!say Good morning.")
    OpenCode(wire.url, agent.name, scratch, say).prompt("Wish me a good morning.")
    assert [first_words(one, "system")[:29] for one in wire.beside] == ["You are a title generator. Yo"]
    assert "title generator" not in heard(agent)
    before = what_is_kept(agent)
    assert send_again(agent, wire.beside[0]).status_code == 200
    assert what_is_kept(agent) == before
    assert wire.failures() == []


def test_opencode_gets_a_summary_and_its_session_continues(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    word = secret_in(scratch.work / "notes.txt")
    teach(agent, "!say Good morning.", call("read", filePath=str(scratch.work / "notes.txt")), ANSWER)
    session = OpenCode(wire.url, agent.name, scratch, say)
    session.prompt("Wish me a good morning.")
    before = what_is_kept(agent)
    session.summarize()
    assert first_words(wire.beside[-1], "system").startswith("You are a context summarization agent")
    assert what_is_kept(agent) == before
    assert word in session.prompt("Which word is in notes.txt?", goes_on=True)
    assert "context summarization" not in heard(agent)
    assert wire.failures() == []


def test_qwen_code_gets_a_summary_in_both_of_its_ways(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    teach(agent, "!say Good morning.", "!say And a good evening.")
    session = QwenCode(wire.url, agent.name, scratch, say)
    session.prompt("Wish me a good morning.")
    session.prompt("And now?", goes_on=True)
    before = what_is_kept(agent)
    session.prompt("/compress", goes_on=True)
    assert last_words(wire.asked[-1]).startswith(COMPACTION)
    assert first_words(wire.beside[-1], "system").startswith(COMPACTION)
    assert what_is_kept(agent) == before
    assert wire.failures() == []


def test_open_webui_gets_titles_tags_and_follow_ups(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    notes = scratch.work / "notes.txt"
    word = secret_in(notes)
    teach(agent, call("read_file", path=str(notes)), ANSWER)
    with open_webui(wire.url, scratch, say) as ui:
        assert agent.name in ui.models()
        chat = ui.chat(agent.name, "Which word is in notes.txt?")
        assert word in chat["answer"]["content"]
        assert len(wire.asked) == 2
        assert len(wire.beside) == 3
        assert all(first_words(one, "user").startswith("### Task:\n") for one in wire.beside)
        assert "### Task" not in heard(agent)

        before = what_is_kept(agent)
        for kind, wanted in (("title", "A Walk"), ("tags", ["Walks"]), ("follow_up", ["Where to?"])):
            said = json.dumps({kind: wanted})
            answer = ui.task(kind, agent.name, [{"role": "user", "content": f"Let us talk.\n!say {said}"}])
            assert json.loads(answer)[kind] == wanted
            assert what_is_kept(agent) == before
    assert wire.failures() == []
