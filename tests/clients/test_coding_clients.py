"""OpenCode and Qwen Code do the work of a programmer with an agent behind the bridge."""

from __future__ import annotations

import pytest

from tests.clients.opencode import OpenCode
from tests.clients.process import Scratch
from tests.clients.qwen_code import QwenCode
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.clients.wire import Wire
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.mark.parametrize("client", [OpenCode, QwenCode])
def test_the_client_reads_writes_runs_and_continues_a_session(
    client: type[OpenCode] | type[QwenCode], agent: Agent, scratch: Scratch, wire: Wire
) -> None:
    notes, later, report, made = (scratch.work / name for name in ("notes.txt", "later.txt", "report.txt", "made.txt"))
    first, second = secret_in(notes), secret_in(later)
    teach(
        agent,
        call(client.WRITE, **{client.PATH: str(report), "content": "All is well.\n"}),
        call(client.RUN, command=f"cp {report} {made}", description="Copy the report"),
        call(client.READ, **{client.PATH: str(notes)}),
        ANSWER,
        call(client.READ, **{client.PATH: str(later)}),
        ANSWER,
    )
    session = client(wire.url, agent.name, scratch, say)

    assert first in session.prompt("Write report.txt, copy it to made.txt, and say which word is in notes.txt.")
    assert report.read_text() == made.read_text() == "All is well.\n"
    assert len(wire.asked) == 4

    assert second in session.prompt("And which one in later.txt?", goes_on=True)
    assert len(wire.asked) == 6
    assert wire.failures() == []


@pytest.mark.each_loop
def test_opencode_reads_a_file_through_the_responses_api(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    notes = scratch.work / "notes.txt"
    word = secret_in(notes)
    teach(agent, call(OpenCode.READ, **{OpenCode.PATH: str(notes)}), ANSWER)
    session = OpenCode(wire.url, agent.name, scratch, say, provider="@ai-sdk/openai")
    assert word in session.prompt("Which word is in notes.txt?")
    assert {call.path for call in wire.asked} == {"/v1/responses"}
    assert wire.failures() == []


def test_a_subagent_of_opencode_works_while_the_agent_waits_for_it(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    errand = "Go and look.\n!say There is no milk."
    teach(agent, call("task", description="Look", prompt=errand, subagent_type="general"), ANSWER)
    session = OpenCode(wire.url, agent.name, scratch, say)
    assert "There is no milk." in session.prompt("Have somebody look.")
    assert [call.headers.get("x-parent-session-id") is not None for call in wire.asked] == [False, True, False]
    assert not [line for line in agent.story() if line.startswith("user: Go and look.")]
    assert wire.failures() == []
