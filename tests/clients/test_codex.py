"""Codex does the work of a programmer with an agent behind the bridge."""

from __future__ import annotations

import re

import pytest

from bridge.operation.codex_names import is_a_model_of_codex
from testbed.proxy.faults import Cut
from tests.clients.codex import Codex
from tests.clients.installed import folder_of
from tests.clients.pins import CODEX
from tests.clients.process import Scratch
from tests.clients.task import ANSWER, call, secret_in, teach
from tests.clients.wire import Wire
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.each_loop, pytest.mark.timeout(600)]


def test_codex_runs_commands_writes_and_continues_a_session(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    notes, later, made = (scratch.work / name for name in ("notes.txt", "later.txt", "made.txt"))
    first, second = secret_in(notes), secret_in(later)
    teach(
        agent,
        call(Codex.RUN, cmd=f"cp {notes} {made}"),
        call(Codex.RUN, cmd=f"cat {made}"),
        ANSWER,
        call(Codex.RUN, cmd=f"cat {later}"),
        ANSWER,
    )
    session = Codex(wire.url, agent.name, scratch, say)

    assert first in session.prompt("Copy notes.txt to made.txt, and say which word is in it.")
    assert made.read_text() == notes.read_text()
    assert len(wire.asked) == 3

    assert second in session.prompt("And which one in later.txt?", goes_on=True)
    assert len(wire.asked) == 5
    assert wire.failures() == []


def test_codex_applies_a_patch_as_free_text(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    made = scratch.work / "made.txt"
    patch = f"*** Begin Patch\n*** Add File: {made}\n+All is well.\n*** End Patch\n"
    named = agent.renamed("gpt-5.5")
    try:
        teach(named, call("apply_patch", input=patch), ANSWER)
        Codex(wire.url, named.name, scratch, say).prompt("Write made.txt.")
    finally:
        named.renamed(agent.name)
    assert made.read_text() == "All is well.\n"
    assert wire.failures() == []


def test_codex_sums_up_beside_the_agent_and_tells_it_the_summary_of_a_result(
    agent: Agent, scratch: Scratch, wire: Wire
) -> None:
    notes = scratch.work / "notes.txt"
    secret_in(notes)
    teach(agent, call(Codex.RUN, cmd=f"cat {notes}"), "!say Yes.")
    session = Codex(wire.url, agent.name, scratch, say, model_auto_compact_token_limit=1)
    session.prompt("Which word is in notes.txt?")
    assert wire.beside
    assert not [line for line in agent.story() if line.startswith("user: You are performing a CONTEXT CHECKPOINT")]
    assert [line for line in agent.story() if line.startswith("user: Another language model started")]
    assert wire.failures() == []


def test_codex_asks_again_with_the_thoughts_that_came_before_a_stream_failed(
    agent: Agent, scratch: Scratch, wire: Wire
) -> None:
    """An agent of the newest type has no thoughts in messages of their own here."""
    last = "message" if agent.type == "letta_v1_agent" else "reasoning"
    teach(agent, "!think Hm.\n!reason Hm.\n!say All is well.")
    with agent.world.proxy.inject(Cut(after_events=2), "POST", "/v1/agents/*/messages/stream", times=1) as rule:
        said = Codex(wire.url, agent.name, scratch, say).prompt("How is it?")
    assert (rule.applied, said.strip()) == (1, "All is well.")
    assert [call.body["input"][-1]["type"] for call in wire.asked] == ["message", last]
    assert len([line for line in agent.story() if line.startswith("user: How is it?")]) == 1
    assert wire.failures() == []


def test_a_subagent_of_codex_works_beside_the_agent(agent: Agent, scratch: Scratch, wire: Wire) -> None:
    errand = "Go and look.\n!say There is no milk."
    teach(agent, call("multi_agent_v1__spawn_agent", message=errand), call(Codex.RUN, cmd="sleep 8"), "!say Done.")
    assert "Done." in Codex(wire.url, agent.name, scratch, say).prompt("Have somebody look.")
    of_parent = [call for call in wire.asked if "x-codex-parent-thread-id" not in call.headers]
    assert (len(of_parent), len(wire.asked)) == (3, 4)
    assert not [line for line in agent.story() if line.startswith("user: Go and look.")]
    assert wire.failures() == []


def test_the_names_of_codexs_own_models_are_known() -> None:
    programs = folder_of(CODEX, say).rglob("bin/codex")
    found = {name for program in programs for name in re.findall(rb'"slug": ?"([a-z0-9.-]+)"', program.read_bytes())}
    assert len(found) > 5
    assert [name for name in found if not is_a_model_of_codex(name.decode())] == []


def test_a_codex_that_is_killed_in_the_middle_goes_on_in_its_session(
    agent: Agent, scratch: Scratch, wire: Wire
) -> None:
    notes = scratch.work / "notes.txt"
    word = secret_in(notes)
    teach(agent, call(Codex.RUN, cmd="sleep 30"), call(Codex.RUN, cmd=f"cat {notes}"), ANSWER)
    session = Codex(wire.url, agent.name, scratch, say)
    session.interrupted("Wait for half a minute.", seconds=8)
    assert word in session.prompt("Stop waiting. Which word is in notes.txt?", goes_on=True)
    assert wire.failures() == []
