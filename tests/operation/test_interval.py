from __future__ import annotations

import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.errors import LettaUnreachable
from bridge.operation import background
from bridge.operation.background import Background
from bridge.operation.interval import OnceAnInterval
from tests.clock import Clock
from tests.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "last-sweep"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """At a full second, so that the age of a file is exact."""
    stands = Clock(float(int(time.time())))
    monkeypatch.setattr(time, "time", stands)
    return stands


def ages(path: Path, seconds: float) -> None:
    """The file is that old."""
    path.touch()
    then = time.time() - seconds
    os.utime(path, (then, then))


def is_due(path: Path, interval: float) -> bool:
    """For a worker that asks for the first time."""
    return OnceAnInterval(path, interval).is_due()


@pytest.mark.usefixtures("clock")
def test_the_first_time_comes_an_interval_after_the_first_question(path: Path) -> None:
    assert not is_due(path, 3600)
    ages(path, 3599)
    assert not is_due(path, 3600)
    ages(path, 3600)
    assert is_due(path, 3600)


def test_it_is_due_for_one_worker_only(path: Path) -> None:
    ages(path, 9000)
    assert [is_due(path, 3600) for _ in range(3)] == [True, False, False]


def test_it_is_due_for_one_of_many_workers_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is that of a file, so it makes no difference whose threads they are."""
    ages(path, 9000)
    set_age = os.utime

    def slow(file: int) -> None:
        time.sleep(0.02)
        set_age(file)

    monkeypatch.setattr(os, "utime", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(is_due, [path] * 8, [3600] * 8))
    assert sum(found) == 1


def test_an_interval_of_zero_is_never(path: Path) -> None:
    assert not is_due(path, 0)
    assert not path.exists()


def test_between_two_times_no_file_is_asked(path: Path) -> None:
    worker = OnceAnInterval(path, 3600)
    assert not worker.is_due()
    path.unlink()
    assert not worker.is_due()
    assert not path.exists()


def test_a_worker_that_looked_early_looks_again_when_it_may_be_due(path: Path, clock: Clock) -> None:
    ages(path, 3600 - 0.05)
    worker = OnceAnInterval(path, 3600)
    assert not worker.is_due()
    clock.now += 1
    until(worker.is_due)


@pytest.mark.fault("the clock is set")
def test_a_clock_that_was_put_back_begins_a_new_interval(path: Path) -> None:
    ages(path, -9000)
    assert not is_due(path, 3600)
    assert abs(path.stat().st_mtime - time.time()) < 60
    ages(path, 3600)
    assert is_due(path, 3600)


def work_of(background: Background) -> None:
    """Start it and wait until its thread is gone."""
    background.start_if_due()
    for thread in threading.enumerate():
        if thread.name == "sweep":
            thread.join()


def test_the_work_is_done_when_it_is_due() -> None:
    done: list[str] = []
    answers = iter([False, True, False])
    background = Background("sweep", lambda: next(answers), lambda: done.append(threading.current_thread().name))
    for _ in range(3):
        work_of(background)
    assert done == ["sweep"]


def test_the_caller_does_not_wait_for_the_work() -> None:
    go_on = threading.Event()
    background = Background("sweep", lambda: True, go_on.wait)
    background.start_if_due()
    assert any(thread.name == "sweep" for thread in threading.enumerate())
    go_on.set()


def test_work_that_fails_is_told_to_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise LettaUnreachable("It is down.")

    with caplog.at_level(logging.WARNING):
        work_of(Background("sweep", lambda: True, fail))
    told = [record.getMessage() for record in caplog.records if record.name == background.__name__]
    assert told == ["a sweep failed: It is down."]  # threads of other tests may have something to say, too


@pytest.mark.fault("the disk is full or can't be written")
def test_a_folder_that_is_gone_fails_no_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    due = OnceAnInterval(tmp_path / "gone" / "last-sweep", 3600)
    with caplog.at_level(logging.WARNING):
        work_of(Background("sweep", due.is_due, lambda: done.append(1)))
    assert done == []
    assert "whether a sweep is due can't be told" in caplog.text
