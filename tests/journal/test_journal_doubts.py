"""A journal whose store fails between two writes, or answers late, and turns that are taken over in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from bridge.errors import StoreUnavailable, UnknownModel
from bridge.journal import recording
from bridge.journal.batches import to_text
from bridge.journal.journal import Journal
from bridge.journal.stream import TurnStream
from bridge.store.port import Store
from tests.journals import ANSWER, KEEP, SAME, Agent, agent, ask, open_store, quick, read, short_lives
from tests.waiting import SOON, until

__all__ = ["agent", "open_store", "quick", "short_lives"]


# --- what the store was told, and may have done or not ----------------------------------------------------


class Unsure:
    """A store that does what it is asked for, and says that it could not, for the first appendings."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self.times = times

    def append(self, *write: Any) -> None:
        self._store.append(*write)
        self.times -= 1
        if self.times >= 0:
            raise StoreUnavailable("no answer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_write_that_was_done_and_not_confirmed_doubles_nothing(
    open_store: Callable[[], Store], agent: Agent, times: int
) -> None:
    unsure = Unsure(open_store(), times)
    agent.go_on.clear()
    _, feed = ask(Journal(unsure, KEEP), agent)
    assert agent.begun.wait(SOON)
    until(lambda: unsure.times < 0)
    agent.go_on.set()
    assert read(feed) == ANSWER
    assert read(ask(Journal(open_store(), KEEP), agent)[1]) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_write_that_comes_behind_the_end_changes_nothing(open_store: Callable[[], Store], agent: Agent) -> None:
    store = open_store()
    read(ask(Journal(store, KEEP), agent)[1])
    events = recording.events_key(claim_of(store).token)
    store.append(events, to_text(ANSWER[:2]), 10, KEEP)
    assert read(ask(Journal(open_store(), KEEP), agent)[1]) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_an_answer_whose_beginning_the_store_lost_is_not_taken_for_whole(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    store = open_store()
    agent.go_on.clear()
    _, feed = ask(Journal(open_store(), KEEP), agent)
    assert agent.begun.wait(SOON)
    events = recording.events_key(claim_of(store).token)
    until(lambda: store.items(events))
    store.remove(events)
    agent.go_on.set()
    assert read(feed) == ANSWER
    assert read(ask(Journal(store, KEEP), agent)[1]) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, True]


@pytest.mark.fault("the clock is set")
@pytest.mark.usefixtures("short_lives")
def test_a_dead_worker_whose_last_word_does_not_expire_is_not_waited_for(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    """As when the clock of Redis is put back: what was to be kept for seconds is kept for as much longer."""
    store = open_store()
    claim = recording.Claim("turn-1", SAME.body, "token-1", "0:another-machine:1:1")
    store.put(f"turn:{SAME.name}", claim.text(), KEEP)
    store.put(recording.worker_key(claim.worker), json.dumps([7, [claim.token]]), KEEP)
    assert read(ask(Journal(store, KEEP), agent)[1]) == ANSWER
    assert agent.runs == [("turn-1", True)]


# --- claims of others -------------------------------------------------------------------------------------


def test_a_slow_client_that_has_its_answer_at_last_does_not_end_the_turn_after_that(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    worker = Journal(open_store(), KEEP)
    slow, feed = ask(worker, agent)
    read(feed)
    quick, again = ask(worker, agent)
    read(again)
    quick.delivered()
    agent.go_on.clear()
    agent.begun.clear()
    _, next_turn = ask(worker, agent)
    assert agent.begun.wait(SOON)
    slow.delivered()
    _, repeat = ask(Journal(open_store(), KEEP), agent)
    agent.go_on.set()
    assert read(next_turn) == read(repeat) == ANSWER
    assert len(agent.runs) == 2


def test_a_turn_that_never_began_and_is_attempted_by_another_by_now_is_not_forgotten(
    open_store: Callable[[], Store], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes when this one has said that it failed, and has not yet forgotten the turn."""
    agent.fails_with.append(UnknownModel("no such agent"))
    agent.go_on.clear()
    worker, other = Journal(open_store(), KEEP), Journal(open_store(), KEEP)
    end, attempts = worker.worker.end, list[TurnStream]()

    def end_and_be_overtaken(*outcome: Any) -> None:
        end(*outcome)
        attempts.append(ask(other, agent)[1])
        assert agent.begun.wait(SOON)

    monkeypatch.setattr(worker.worker, "end", end_and_be_overtaken)
    with pytest.raises(UnknownModel):
        read(ask(worker, agent)[1])
    monkeypatch.undo()
    attempts.append(ask(worker, agent)[1])
    agent.go_on.set()
    assert [read(feed) for feed in attempts] == [ANSWER, ANSWER]
    assert len(agent.runs) == 2


def claim_of(store: Store) -> recording.Claim:
    return recording.Claim(**json.loads(store.get(f"turn:{SAME.name}") or "{}"))
