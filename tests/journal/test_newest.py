from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bridge.errors import InvalidRequest, StoreUnavailable
from bridge.journal.newest import NewestTurns
from bridge.store.sqlite import LocalStore
from bridge.turn import Message
from tests.asked import turn_of
from tests.stores import FailingStore

AGENT = "agent-1"
FIRST = replace(turn_of(Message("user", "One")), id="turn-1", is_named=True)
SECOND = replace(FIRST, id="turn-2", follows="turn-1")


@pytest.fixture
def newest(tmp_path: Path) -> NewestTurns:
    return NewestTurns(LocalStore(tmp_path / "shared.db"))


def test_a_turn_goes_on_from_the_newest_and_from_no_older_one(newest: NewestTurns) -> None:
    newest.note(AGENT, FIRST)
    newest.check(AGENT, SECOND)
    newest.note(AGENT, SECOND)
    newest.check(AGENT, SECOND)  # the same turn, attempted again
    with pytest.raises(InvalidRequest) as refused:
        newest.check(AGENT, replace(SECOND, id="turn-3"))
    assert refused.value.code == "previous_response_not_newest"


def test_a_turn_that_names_none_may_always_begin(newest: NewestTurns) -> None:
    newest.note(AGENT, SECOND)
    newest.check(AGENT, FIRST)


def test_a_turn_without_its_agent_stands_for_the_one_that_it_goes_on_from(newest: NewestTurns) -> None:
    third = replace(FIRST, id="turn-3", follows="turn-2")
    newest.note(AGENT, FIRST)
    newest.note_without_agent(AGENT, SECOND)
    newest.check(AGENT, third)
    newest.note(AGENT, third)
    newest.note_without_agent(AGENT, SECOND)  # late: the agent has answered since
    newest.check(AGENT, replace(FIRST, id="turn-4", follows="turn-3"))


def test_a_turn_without_its_agent_that_names_none_stands_for_the_newest(newest: NewestTurns) -> None:
    newest.note_without_agent(AGENT, FIRST)
    newest.check(AGENT, SECOND)
    newest.note(AGENT, SECOND)
    newest.note_without_agent(AGENT, replace(FIRST, id="turn-3"))
    newest.check(AGENT, replace(FIRST, id="turn-4", follows="turn-3"))


def test_other_agents_and_turns_without_a_name_do_not_count(newest: NewestTurns) -> None:
    newest.note(AGENT, FIRST)
    newest.note("agent-2", SECOND)
    newest.note(AGENT, replace(FIRST, id="turn-9", is_named=False))
    newest.check(AGENT, SECOND)


def test_a_store_that_fails_makes_no_turn_fail_that_has_ended(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = FailingStore(LocalStore(tmp_path / "shared.db"), fault=StoreUnavailable("gone"))
    for note in (NewestTurns(store).note, NewestTurns(store).note_without_agent):
        caplog.clear()
        note(AGENT, FIRST)
        assert "gone" in caplog.text
