from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from bridge.errors import LettaUnreachable
from bridge.operation.background import BackgroundWork
from bridge.operation.interval import OnceAnInterval
from tests.waiting import SOON, until


def work_of(background: BackgroundWork) -> None:
    """Starts it, and waits until its thread has ended."""
    background.start_if_due()
    for thread in threading.enumerate():
        if thread.name == "sweep":
            thread.join()


def test_due_work_is_done_in_its_own_thread() -> None:
    done: list[str] = []
    answers = iter([False, True, False])
    background = BackgroundWork("sweep", lambda: next(answers), lambda: done.append(threading.current_thread().name))
    for _ in range(3):
        work_of(background)
    assert done == ["sweep"]


def test_the_caller_does_not_wait_for_the_work() -> None:
    go_on = threading.Event()
    background = BackgroundWork("sweep", lambda: True, go_on.wait)
    background.start_if_due()
    assert any(thread.name == "sweep" for thread in threading.enumerate())
    go_on.set()


def test_work_that_runs_is_not_started_again_until_it_has_ended() -> None:
    go_on, begun, asked = threading.Event(), list[int](), list[int]()

    def is_due() -> bool:
        asked.append(1)
        return True

    background = BackgroundWork("sweep", is_due, lambda: (begun.append(1), go_on.wait(SOON)))
    for _ in range(5):
        background.start_if_due()
    assert (len(asked), len(begun)) == (1, 1)
    go_on.set()
    until(lambda: background.start_if_due() or len(begun) == 2)


def test_only_the_log_reports_work_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise LettaUnreachable("It is down.")

    with caplog.at_level(logging.WARNING):
        work_of(BackgroundWork("sweep", lambda: True, fail))
    logged = [record.getMessage() for record in caplog.records if record.name == BackgroundWork.__module__]
    assert logged == ["a sweep failed: It is down."]  # threads of other tests may log something, too


@pytest.mark.fault("the disk is full or can't be written")
def test_a_missing_folder_does_not_fail_a_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    due = OnceAnInterval(tmp_path / "gone" / "last-sweep", 3600)
    with caplog.at_level(logging.WARNING):
        work_of(BackgroundWork("sweep", due.is_due, lambda: done.append(1)))
    assert done == []
    assert "cannot find out whether a sweep is due" in caplog.text
