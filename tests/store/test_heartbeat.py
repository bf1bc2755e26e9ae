"""The sign of life of a process, as other workers see it."""

from __future__ import annotations

import multiprocessing
import os
import threading
from pathlib import Path

import pytest

from bridge.errors import StoreUnavailable
from bridge.store import heartbeat as module
from bridge.store.heartbeat import Heartbeat, beats_of_living_workers, last_beat
from bridge.store.sqlite import LocalStore
from tests.alone import run_alone
from tests.stores import EmptiedStore, FailingStore
from tests.waiting import SOON, until


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULSE", 0.05)


def beats(name: str = "heartbeat") -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == name}


def test_a_process_is_known_before_it_can_be_named(store: LocalStore) -> None:
    heart = Heartbeat(store)
    assert beats_of_living_workers(store) == []
    beat = last_beat(store, heart.id)
    assert beat is not None
    assert (beat.id, beat.turns) == (heart.id, ())
    until(lambda: [one.id for one in beats_of_living_workers(store)] == [heart.id])


def test_a_process_has_one_heartbeat(store: LocalStore) -> None:
    heart, before = Heartbeat(store), beats()
    ids = {heart.id for _ in range(5)}
    assert len(ids) == 1
    assert len(beats() - before) == 1


def test_a_heartbeat_that_beats_as_it_starts_goes_on(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    class QuickThread(threading.Thread):
        """Lets the thread run for a moment before its start returns."""

        def start(self) -> None:
            super().start()
            self.join(0.2)

    monkeypatch.setattr(module.threading, "Thread", QuickThread)
    heart = Heartbeat(store)
    heart.beat_soon()
    name = heart.id
    until(lambda: (beat := last_beat(store, name)) and beat.number >= 1)


def test_a_forked_process_has_a_heartbeat_of_its_own(tmp_path: Path) -> None:
    run_alone(fork_with_a_heartbeat, tmp_path)


def fork_with_a_heartbeat(folder: Path) -> None:
    store = LocalStore(folder / "store")
    heart = Heartbeat(store)
    name = heart.id
    until(lambda: (beat := last_beat(store, name)) and beat.number == 1)
    forks = multiprocessing.get_context("fork")
    ours, theirs = forks.Pipe()
    child = forks.Process(target=lambda: (theirs.send(heart.id), theirs.recv()))
    child.start()
    assert ours.poll(SOON)
    its_name = ours.recv()
    until(lambda: (beat := last_beat(store, its_name)) and beat.number > 1)
    assert {beat.pid for beat in beats_of_living_workers(store)} == {os.getpid(), child.pid}
    child.kill()
    child.join()
    assert [beat.id for beat in beats_of_living_workers(store)] == [name]


def test_the_beats_name_the_turns_that_run(store: LocalStore) -> None:
    turns: list[str] = []
    heart = Heartbeat(store)
    heart.set_turns_and_work(lambda: turns, lambda: None)
    name = heart.id
    turns.append("token-1")
    heart.beat_soon()
    until(lambda: (beat := last_beat(store, name)) and beat.turns == ("token-1",))
    first = last_beat(store, name)
    assert first is not None
    until(lambda: (beat := last_beat(store, name)) and beat.number > first.number)


def test_the_work_is_done_with_every_beat(store: LocalStore) -> None:
    done = threading.Semaphore(0)
    heart = Heartbeat(store)
    heart.set_turns_and_work(lambda: ["token-1"], done.release)
    assert heart.id
    assert all(done.acquire(timeout=SOON) for _ in range(3))


def test_a_process_that_the_store_lost_is_listed_again(store: LocalStore) -> None:
    heart = Heartbeat(store)
    name = heart.id
    until(lambda: (beat := last_beat(store, name)) and beat.number == 1)  # the next one comes in IDLE_PULSE seconds
    store.remove("workers", f"process:{name}")
    assert beats_of_living_workers(store) == []
    heart.beat_soon()
    until(lambda: [beat.id for beat in beats_of_living_workers(store)] == [name])


@pytest.mark.parametrize("notices", ["the waiting thread", "a beat"])
def test_a_process_waits_for_the_beats_of_others_when_the_store_lost_its_data(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    monkeypatch.setattr(module, "PULSES_TO_RESTORE", 40)  # a busy machine may stop a heartbeat for a while
    emptied = EmptiedStore(store)
    heart, other = Heartbeat(emptied), Heartbeat(emptied)
    restored = threading.Semaphore(0)
    other.set_turns_and_work(lambda: ["token-1"], restored.release)
    assert heart.id != other.id
    emptied.empty()
    if notices == "a beat":
        heart.beat()
    while restored.acquire(blocking=False):
        pass
    heart.wait_for_lost_data(lambda: False)
    assert restored.acquire(blocking=False)


def test_a_process_does_not_wait_for_a_store_that_lost_nothing(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    heart = Heartbeat(store)
    monkeypatch.setattr(module, "PULSES_TO_RESTORE", 1_000_000)
    for _ in range(2):
        heart.wait_for_lost_data(lambda: False)


def test_the_sign_of_kept_data_is_in_the_store_until_that_loses_its_data(store: LocalStore) -> None:
    emptied = EmptiedStore(store)
    heart = Heartbeat(emptied)
    name = heart.id
    until(lambda: (beat := last_beat(emptied, name)) and beat.number == 1)  # the next one comes in IDLE_PULSE seconds
    (before,) = heart.sign_of_kept_data().items()
    assert emptied.get(before[0]) == before[1]
    emptied.empty()
    heart.restore()
    assert heart.sign_of_kept_data() is None
    restored = emptied.get(before[0])
    assert restored not in (None, before[1])
    beat = last_beat(emptied, name)
    assert beat is not None
    assert (beat.id, beat.pid, beat.number) == (name, os.getpid(), 1)


def test_a_process_waits_no_longer_than_its_data_is_missing(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PULSES_TO_RESTORE", 1_000_000)
    emptied = EmptiedStore(store)
    heart = Heartbeat(emptied)
    assert heart.id
    emptied.empty()
    answers = iter([False, False, True])
    heart.wait_for_lost_data(lambda: next(answers))
    assert list(answers) == []


@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), ValueError("gone"), MemoryError("gone")])
def test_a_store_that_fails_does_not_stop_the_heartbeat(
    store: LocalStore, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    failing = FailingStore(store)
    heart = Heartbeat(failing)
    name = heart.id
    until(lambda: beats_of_living_workers(store))
    failing.fault = fault
    heart.beat_soon()
    until(lambda: "no sign of life: gone" in caplog.text)
    failing.fault = None
    until(lambda: (beat := last_beat(store, name)) and beat.number > 1)


def test_turns_that_can_not_be_named_once_do_not_end_the_heartbeat(store: LocalStore) -> None:
    faults = [MemoryError("gone")]

    def turns() -> list[str]:
        if faults:
            raise faults.pop()
        return ["token-1"]

    heart = Heartbeat(store)
    heart.set_turns_and_work(turns, lambda: None)
    name = heart.id
    until(lambda: (beat := last_beat(store, name)) and beat.turns == ("token-1",))


def test_a_process_lives_on_when_its_last_turn_ends_during_a_beat(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat that names turns counts for a short time only, so the next beat has to come soon."""
    monkeypatch.setattr(module, "ALIVE", 0.5)
    turns = ["token-1"]
    heart = Heartbeat(store)
    heart.set_turns_and_work(lambda: turns, turns.clear)
    name = heart.id
    until(lambda: (beat := last_beat(store, name)) and beat.number > 1)
    assert last_beat(store, name).turns == ()


def test_a_heartbeat_ends_with_its_owner(store: LocalStore) -> None:
    before = beats()
    heart: Heartbeat | None = Heartbeat(store)
    assert heart is not None
    heart.set_turns_and_work(lambda: ["token-1"], lambda: None)
    assert heart.id
    heart = None
    until(lambda: not beats() - before)
