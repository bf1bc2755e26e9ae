"""Letta Code does the work of a programmer with an agent behind the bridge."""

from __future__ import annotations

import pytest

from tests.clients.letta_code import DEFAULT, NEWEST, OLDER, LettaCode, Release, edits
from tests.clients.process import Scratch
from tests.clients.task import script, secret_in
from tests.clients.wire import LettaWire
from tests.real.conftest import say
from tests.real.world import Agent

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

SERVERS = ("0.8.17", "0.11.7", "0.14.0", "0.16.1", "0.16.8")
RELEASES = pytest.mark.parametrize("release", [NEWEST, OLDER], ids=lambda release: release.client.name)
PLACES = pytest.mark.parametrize("conversation", ["", DEFAULT], ids=["new", "default"])


@RELEASES
@PLACES
def test_letta_code_reads_edits_runs_and_continues_its_conversation(
    agent: Agent, scratch: Scratch, letta_wire: LettaWire, release: Release, conversation: str
) -> None:
    notes, later, last, made = (scratch.work / name for name in ("notes.txt", "later.txt", "last.txt", "made.txt"))
    first, second, third = map(secret_in, (notes, later, last))
    session = LettaCode(letta_wire.url, agent.id, scratch, say, release, conversation)

    working = script(
        release.runs(f"cat {notes}"),
        edits(notes, notes.read_text().strip(), "All is well."),
        release.runs(f"cp {notes} {made} && cat {later}"),
    )
    assert second in session.prompt(f"Read notes.txt, make it friendlier and copy it.\n{working}")
    assert notes.read_text() == made.read_text() == "All is well.\n"
    assert [line for line in agent.story() if line.startswith("result of") and first in line]
    assert len(letta_wire.asked) == 4

    assert third in session.prompt(f"And last.txt?\n{script(release.runs(f'cat {last}'))}", goes_on=True)
    assert [line for line in agent.story() if line.startswith("result of") and first in line]
    assert len(letta_wire.asked) == 6
    assert letta_wire.failures() == []


@RELEASES
@PLACES
def test_a_letta_code_that_is_killed_in_the_middle_of_a_tool_is_started_again(
    agent: Agent, scratch: Scratch, letta_wire: LettaWire, release: Release, conversation: str
) -> None:
    notes, begun = scratch.work / "notes.txt", scratch.work / "begun.txt"
    word = secret_in(notes)
    session = LettaCode(letta_wire.url, agent.id, scratch, say, release, conversation)
    session.interrupted(f"Wait.\n{script(release.runs(f'touch {begun} && sleep 60'))}", begun)
    reading = script(release.runs(f"cat {notes}"))
    assert word in session.prompt(f"Stop waiting. Which word is in notes.txt?\n{reading}")
    story = agent.story()
    left_open = [place for place, line in enumerate(story) if line.startswith("call ") and "sleep 60" in line]
    assert all(story[place + 1].startswith("result of") for place in left_open)
    assert letta_wire.failures() == []
