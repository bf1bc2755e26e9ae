from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.operation.interval import OnceAnInterval
from tests.clock import Clock
from tests.waiting import until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "last-sweep"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock at a full second, so that the age of a file is exact."""
    stopped = Clock(float(int(time.time())))
    monkeypatch.setattr(time, "time", stopped)
    return stopped


def ages(path: Path, seconds: float) -> None:
    """Makes the file that old."""
    path.touch()
    then = time.time() - seconds
    os.utime(path, (then, then))


def is_due(path: Path, interval: float) -> bool:
    """Asks as a worker that asks for the first time."""
    return OnceAnInterval(path, interval).is_due()


@pytest.mark.usefixtures("clock")
def test_the_first_time_is_an_interval_after_the_file_was_made(path: Path) -> None:
    assert not is_due(path, 3600)
    ages(path, 3599)
    assert not is_due(path, 3600)
    ages(path, 3600)
    assert is_due(path, 3600)


def test_it_is_due_for_one_worker_only(path: Path) -> None:
    ages(path, 9000)
    assert [is_due(path, 3600) for _ in range(3)] == [True, False, False]


def test_it_is_due_for_one_of_many_workers_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is on a file, so threads show the same as processes."""
    ages(path, 9000)
    set_age = os.utime

    def slow(file: int) -> None:
        time.sleep(0.02)
        set_age(file)

    monkeypatch.setattr(os, "utime", slow)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(is_due, [path] * 8, [3600] * 8))
    assert sum(found) == 1


def test_an_interval_of_zero_means_never(path: Path) -> None:
    assert not is_due(path, 0)
    assert not path.exists()


def test_the_file_is_not_read_before_the_interval_is_over(path: Path) -> None:
    worker = OnceAnInterval(path, 3600)
    assert not worker.is_due()
    path.unlink()
    assert not worker.is_due()
    assert not path.exists()


def test_a_worker_that_asked_too_early_asks_again_in_time(path: Path, clock: Clock) -> None:
    ages(path, 3600 - 0.05)
    worker = OnceAnInterval(path, 3600)
    assert not worker.is_due()
    clock.now += 1
    until(worker.is_due)


@pytest.mark.fault("the clock is set")
def test_a_clock_that_was_put_back_starts_a_new_interval(path: Path) -> None:
    ages(path, -9000)
    assert not is_due(path, 3600)
    assert abs(path.stat().st_mtime - time.time()) < 60
    ages(path, 3600)
    assert is_due(path, 3600)
