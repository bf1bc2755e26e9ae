"""Turns while the store fails, loses data or answers late, and turns that another worker takes over."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import pytest

from bridge.errors import InternalFailure, StoreUnavailable, UnknownModel
from bridge.journal.batches import batch_to_text
from bridge.journal.claims import Claim, Claims, claim_key
from bridge.journal.recording import events_key
from bridge.store import heartbeat
from bridge.store.heartbeat import Beat
from bridge.store.port import Append, Change, Store
from bridge.turns.part import Part
from tests.parts import ANSWER, KEEP, SAME, Agent, agent, ask, new_worker, open_store, quick, read, short_lives
from tests.stores import EmptiedStore, FailingStore
from tests.waiting import SOON, until

__all__ = ["agent", "open_store", "quick", "short_lives"]

Open = Callable[[], Store]


# --- writes that may have been done or not ----------------------------------------------------------------


class Unsure:
    """A store that does its first appends and fails nevertheless."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self.times = times

    def append(self, *write: Any) -> None:
        self._store.append(*write)
        self._fail_at_first()

    def change(self, changes: Sequence[Change], **conditions: Any) -> bool:
        made = self._store.change(changes, **conditions)
        if any(isinstance(change, Append) for change in changes):
            self._fail_at_first()
        return made

    def _fail_at_first(self) -> None:
        self.times -= 1
        if self.times >= 0:
            raise StoreUnavailable("no answer")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_without_its_store_no_turn_begins(open_store: Open, agent: Agent) -> None:
    with pytest.raises(StoreUnavailable):
        ask(new_worker(FailingStore(open_store(), fault=StoreUnavailable("gone"))), agent)
    assert agent.runs == []


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["same worker", "another worker"])
@pytest.mark.parametrize("beats", [0, 3], ids=["at once", "later"])
def test_a_repeat_joins_a_turn_during_which_the_store_was_emptied(
    open_store: Open, agent: Agent, monkeypatch: pytest.MonkeyPatch, elsewhere: bool, beats: int
) -> None:
    monkeypatch.setattr(heartbeat, "PULSES_TO_RESTORE", 40)  # a busy machine may stop a heartbeat for a while
    store = EmptiedStore(open_store())
    here, other = new_worker(store), new_worker(store)
    assert here.heartbeat.id != other.heartbeat.id
    agent.go_on.clear()
    first = ask(here, agent)
    assert agent.begun.wait(SOON)
    store.empty()
    time.sleep(beats * heartbeat.PULSE)
    second = ask(other if elsewhere else here, agent)
    agent.go_on.set()
    assert read(first) == read(second) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_an_answer_that_ends_as_the_store_is_emptied_is_there_for_a_repeat(open_store: Open, agent: Agent) -> None:
    store = EmptiedStore(open_store())
    here, other = new_worker(store), new_worker(store)
    assert here.heartbeat.id != other.heartbeat.id
    agent.go_on.clear()
    first = ask(here, agent)
    assert agent.begun.wait(SOON)
    store.empty()
    agent.go_on.set()
    assert read(first) == ANSWER
    assert read(ask(other, agent)) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), ValueError("a fault of the bridge")])
def test_a_store_that_fails_during_a_turn_does_not_end_it(open_store: Open, agent: Agent, fault: Exception) -> None:
    store = FailingStore(open_store())
    agent.go_on.clear()
    part = ask(new_worker(store), agent)
    assert agent.begun.wait(SOON)
    store.fault = fault
    agent.go_on.set()
    assert read(part) == ANSWER
    store.fault = StoreUnavailable("gone")
    part.note_delivery()


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_run_is_not_cancelled_while_the_store_cannot_say_who_follows_it(open_store: Open, agent: Agent) -> None:
    store = FailingStore(open_store())
    agent.go_on.clear()
    part = ask(new_worker(store), agent)
    assert agent.begun.wait(SOON)
    again = ask(new_worker(open_store()), agent)
    assert again.wait_for_first_event(SOON)
    store.fault = StoreUnavailable("gone")
    part.give_up()
    assert agent.cancelled == []
    store.fault = None
    agent.go_on.set()
    assert read(again) == ANSWER


def test_a_fault_of_the_bridge_in_following_a_turn_is_logged(
    open_store: Open, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_store()
    agent.go_on.clear()
    ask(new_worker(store), agent)
    assert agent.begun.wait(SOON)
    again = ask(new_worker(open_store()), agent)
    store.append(events_key(claim_of(store).token), '[0, [["Text"]], null]', 10, KEEP)
    with pytest.raises(InternalFailure):
        read(again)
    assert "missing 1 required positional argument: 'text'" in caplog.text
    agent.go_on.set()


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("times", [1, 2, 3])
def test_an_event_whose_write_was_not_confirmed_is_not_given_twice(open_store: Open, agent: Agent, times: int) -> None:
    unsure = Unsure(open_store(), times)
    agent.go_on.clear()
    part = ask(new_worker(unsure), agent)
    assert agent.begun.wait(SOON)
    until(lambda: unsure.times < 0)
    agent.go_on.set()
    assert read(part) == ANSWER
    assert read(ask(new_worker(open_store()), agent)) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_write_that_arrives_after_the_end_changes_nothing(open_store: Open, agent: Agent) -> None:
    store = open_store()
    read(ask(new_worker(store), agent))
    events = events_key(claim_of(store).token)
    store.append(events, batch_to_text(ANSWER[:2]), 10, KEEP)
    assert read(ask(new_worker(open_store()), agent)) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_an_answer_whose_beginning_the_store_lost_does_not_count_as_whole(open_store: Open, agent: Agent) -> None:
    store = open_store()
    agent.go_on.clear()
    part = ask(new_worker(open_store()), agent)
    assert agent.begun.wait(SOON)
    events = events_key(claim_of(store).token)
    until(lambda: store.items(events))
    store.remove(events)
    agent.go_on.set()
    assert read(part) == ANSWER
    assert read(ask(new_worker(store), agent)) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, True]


@pytest.mark.fault("the clock is set")
@pytest.mark.usefixtures("short_lives")
def test_a_dead_worker_whose_last_beat_does_not_expire_is_not_waited_for(open_store: Open, agent: Agent) -> None:
    """This happens when the clock of Redis is put back: then its keys last longer by that time."""
    store = open_store()
    claim = Claim("turn-1", SAME.body, "token-1", "0:another-machine:1:1")
    beat = Beat(claim.worker, "another-machine", 1, 0.0, 0.0, 7, (claim.token,))
    store.put(claim_key(SAME), claim.to_text(), KEEP)
    store.put(f"process:{claim.worker}", json.dumps(asdict(beat)), KEEP)
    assert read(ask(new_worker(store), agent)) == ANSWER
    assert agent.runs == [("turn-1", True)]


# --- claims of other workers -------------------------------------------------------------------------------------


def test_a_slow_client_that_gets_its_answer_late_does_not_end_the_next_turn(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    slow = ask(worker, agent)
    read(slow)
    fast = ask(worker, agent)
    read(fast)
    fast.note_delivery()
    agent.go_on.clear()
    agent.begun.clear()
    next_turn = ask(worker, agent)
    assert agent.begun.wait(SOON)
    slow.note_delivery()
    repeat = ask(new_worker(open_store()), agent)
    agent.go_on.set()
    assert read(next_turn) == read(repeat) == ANSWER
    assert len(agent.runs) == 2


def test_a_turn_that_never_began_is_not_forgotten_when_another_worker_attempts_it(
    open_store: Open, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other attempt begins when this one has failed, but has not forgotten the turn yet."""
    agent.fails_with.append(UnknownModel("no such agent"))
    agent.go_on.clear()
    worker, other = new_worker(open_store()), new_worker(open_store())
    forget, parts = Claims.forget, list[Part]()

    def be_overtaken_and_forget(claims: Claims, claim: Claim) -> None:
        parts.append(ask(other, agent))
        assert agent.begun.wait(SOON)
        forget(claims, claim)

    monkeypatch.setattr(Claims, "forget", be_overtaken_and_forget)
    with pytest.raises(UnknownModel):
        read(ask(worker, agent))
    parts.append(ask(worker, agent))
    agent.go_on.set()
    assert [read(part) for part in parts] == [ANSWER, ANSWER]
    assert len(agent.runs) == 2


def claim_of(store: Store) -> Claim:
    return Claim.from_text(store.get(claim_key(SAME)) or "{}")
