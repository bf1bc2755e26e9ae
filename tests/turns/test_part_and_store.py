"""A store that fails between two writes, or answers late, and turns that are taken over while it does."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from bridge.errors import StoreUnavailable, UnknownModel
from bridge.journal.batches import End, to_text
from bridge.journal.claims import Claim, claim_key
from bridge.journal.recording import events_key
from bridge.store.heartbeat import Beat
from bridge.store.port import Store
from bridge.turns.live import LiveTurn
from bridge.turns.part import Part
from tests.journals import ANSWER, KEEP, SAME, Agent, agent, ask, journal, open_store, quick, read, short_lives
from tests.waiting import SOON, until

__all__ = ["agent", "open_store", "quick", "short_lives"]


# --- writes that may have been done or not ----------------------------------------------------------------


class Unsure:
    """A store that does the first appends and yet says that it could not."""

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
def test_a_write_that_was_done_but_not_confirmed_doubles_no_event(
    open_store: Callable[[], Store], agent: Agent, times: int
) -> None:
    unsure = Unsure(open_store(), times)
    agent.go_on.clear()
    feed = ask(journal(unsure), agent)
    assert agent.begun.wait(SOON)
    until(lambda: unsure.times < 0)
    agent.go_on.set()
    assert read(feed) == ANSWER
    assert read(ask(journal(open_store()), agent)) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_write_that_comes_after_the_end_changes_nothing(open_store: Callable[[], Store], agent: Agent) -> None:
    store = open_store()
    read(ask(journal(store), agent))
    events = events_key(claim_of(store).token)
    store.append(events, to_text(ANSWER[:2]), 10, KEEP)
    assert read(ask(journal(open_store()), agent)) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_an_answer_whose_beginning_the_store_lost_does_not_count_as_whole(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    store = open_store()
    agent.go_on.clear()
    feed = ask(journal(open_store()), agent)
    assert agent.begun.wait(SOON)
    events = events_key(claim_of(store).token)
    until(lambda: store.items(events))
    store.remove(events)
    agent.go_on.set()
    assert read(feed) == ANSWER
    assert read(ask(journal(store), agent)) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, True]


@pytest.mark.fault("the clock is set")
@pytest.mark.usefixtures("short_lives")
def test_a_dead_worker_whose_last_beat_does_not_expire_is_not_waited_for(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    """As when the clock of Redis is put back: what was to be kept for seconds is kept for as much longer."""
    store = open_store()
    claim = Claim("turn-1", SAME.body, "token-1", "0:another-machine:1:1")
    beat = Beat(claim.worker, "another-machine", 1, 0.0, 0.0, 7, (claim.token,))
    store.put(claim_key(SAME), claim.text(), KEEP)
    store.put(f"worker:{claim.worker}", json.dumps(asdict(beat)), KEEP)
    assert read(ask(journal(store), agent)) == ANSWER
    assert agent.runs == [("turn-1", True)]


# --- claims of other workers -------------------------------------------------------------------------------------


def test_a_slow_client_that_gets_its_answer_late_does_not_end_the_next_turn(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    worker = journal(open_store())
    slow = ask(worker, agent)
    read(slow)
    fast = ask(worker, agent)
    read(fast)
    fast.delivered()
    agent.go_on.clear()
    agent.begun.clear()
    next_turn = ask(worker, agent)
    assert agent.begun.wait(SOON)
    slow.delivered()
    repeat = ask(journal(open_store()), agent)
    agent.go_on.set()
    assert read(next_turn) == read(repeat) == ANSWER
    assert len(agent.runs) == 2


def test_a_turn_that_never_began_is_not_forgotten_when_another_worker_attempts_it(
    open_store: Callable[[], Store], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other attempt begins when this one has failed and has not forgotten the turn yet."""
    agent.fails_with.append(UnknownModel("no such agent"))
    agent.go_on.clear()
    worker, other = journal(open_store()), journal(open_store())
    end, attempts = LiveTurn.end, list[Part]()

    def end_and_be_overtaken(live: LiveTurn, fault: BaseException | None) -> End:
        ended = end(live, fault)
        attempts.append(ask(other, agent))
        assert agent.begun.wait(SOON)
        return ended

    monkeypatch.setattr(LiveTurn, "end", end_and_be_overtaken)
    with pytest.raises(UnknownModel):
        read(ask(worker, agent))
    monkeypatch.undo()
    attempts.append(ask(worker, agent))
    agent.go_on.set()
    assert [read(part) for part in attempts] == [ANSWER, ANSWER]
    assert len(agent.runs) == 2


def claim_of(store: Store) -> Claim:
    return Claim.read(store.get(claim_key(SAME)) or "{}")
