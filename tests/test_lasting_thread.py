"""Work that a worker does for all its life, however often it fails."""

from __future__ import annotations

import logging
import threading
import time

import pytest

from bridge import lasting_thread
from bridge.errors import StoreUnavailable, WorkFailing
from bridge.lasting_thread import LastingThread, check_threads
from tests.waiting import SOON, until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting_thread, "PAUSE", 0.01)


class Owner:
    """Has work again and again, which raises the `faults`, one each time, and then succeeds until `keeps_failing`."""

    def __init__(self, *faults: BaseException) -> None:
        self.faults = [*faults]
        self.stopped = False
        self.done = 0
        self.keeps_failing = threading.Event()
        self.thread = LastingThread("lasting", self.wait, self.work, "nothing is written")

    def wait(self) -> bool:
        time.sleep(0.01)
        return not self.stopped

    def work(self) -> None:
        if self.keeps_failing.is_set():
            raise MemoryError("no memory")
        if self.faults:
            raise self.faults.pop(0)
        self.done += 1


@pytest.mark.parametrize("fault", [MemoryError("no memory"), StoreUnavailable("gone"), SystemExit(), RecursionError()])
def test_the_work_goes_on_after_any_fault(fault: BaseException) -> None:
    owner = Owner(fault)
    owner.thread.start()
    until(lambda: owner.done > 2)
    assert owner.thread.is_running


def test_a_wait_that_fails_ends_no_thread() -> None:
    class Impatient(Owner):
        waits = 0

        def wait(self) -> bool:
            self.waits += 1
            if self.waits == 1:
                raise MemoryError("no memory")
            return super().wait()

    owner = Impatient()
    owner.thread.start()
    until(lambda: owner.done > 2)


def test_a_check_fails_while_the_work_does() -> None:
    owner = Owner()
    owner.thread.start()
    until(lambda: owner.done)
    check_threads([owner.thread])
    owner.keeps_failing.set()

    until(lambda: fails(owner.thread))
    with pytest.raises(WorkFailing, match="nothing is written"):
        check_threads([owner.thread])
    owner.keeps_failing.clear()
    until(lambda: not fails(owner.thread))


def fails(thread: LastingThread) -> bool:
    try:
        thread.check()
    except WorkFailing:
        return True
    return False


def test_the_log_has_one_warning_for_a_row_of_failures(caplog: pytest.LogCaptureFixture) -> None:
    owner = Owner(*[MemoryError("no memory")] * 5)
    owner.thread.start()
    until(lambda: owner.done)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warnings] == ["nothing is written: no memory"]
    assert warnings[0].exc_info


def test_a_log_that_fails_ends_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no memory")

    monkeypatch.setattr(lasting_thread.log, "log", fail)
    owner = Owner(MemoryError("no memory"))
    owner.thread.start()
    until(lambda: owner.done > 2)


def test_it_runs_once_however_often_it_is_started() -> None:
    before = {thread for thread in threading.enumerate() if thread.name == "lasting"}
    owner = Owner()
    for _ in range(3):
        owner.thread.start()
    assert len({thread for thread in threading.enumerate() if thread.name == "lasting"} - before) == 1


def test_it_ends_when_its_owner_says_so_and_can_be_started_again() -> None:
    owner = Owner()
    owner.thread.start()
    owner.stopped = True
    owner.thread.join(SOON)
    assert not owner.thread.is_running
    owner.stopped, owner.done = False, 0
    owner.thread.start()
    until(lambda: owner.done)


def test_it_ends_when_its_owner_is_gone() -> None:
    owner: Owner | None = Owner()
    assert owner is not None
    thread = owner.thread
    thread.start()
    owner = None
    until(lambda: not thread.is_running)
