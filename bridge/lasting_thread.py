"""Threads that live as long as their worker, whatever fails in between."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from weakref import WeakMethod

from bridge.errors import BridgeError, WorkFailing

log = logging.getLogger(__name__)

# Seconds after which work that failed is tried again.
PAUSE = 1.0


class LastingThread:
    """A thread that waits until work is due and does it, again and again. Work that fails is tried again after PAUSE
    seconds, and `complaint` says in the log what does not happen until then. The thread ends when `wait` returns False,
    or when the object that has both methods is gone.
    """

    def __init__(self, name: str, wait: Callable[[], bool], work: Callable[[], object], complaint: str) -> None:
        self._name = name
        self._wait, self._work = WeakMethod(wait), WeakMethod(work)
        self._complaint = complaint
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_failing = False

    @property
    def is_running(self) -> bool:
        """Whether the thread runs in this process. After a fork, it does not run in the child process."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Starts the thread if it does not run. Raises RuntimeError if there is no thread left."""
        with self._guard:
            if not self.is_running:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                thread.start()
                self._thread = thread

    def join(self, seconds: float) -> None:
        """Waits at most `seconds` for the end of the thread."""
        if self._thread is not None:
            self._thread.join(seconds)

    def check(self) -> None:
        """Raises WorkFailing if the last try failed."""
        if self._is_failing:
            raise WorkFailing(f"The bridge has a fault: {self._complaint}.")

    def _run(self) -> None:
        while self._wait_and_work():
            pass

    def _wait_and_work(self) -> bool:
        """Returns False when the thread has to end. Does not wait for new work after a failure, so that it is seen soon
        whether the work is possible again.
        """
        wait, work = self._wait(), self._work()
        if wait is None or work is None:
            return False
        try:
            if not self._is_failing and not wait():
                return False
            work()
            self._is_failing = False
        except BaseException as fault:  # of any kind: nobody starts the thread again
            self._note_failure(fault)
            del wait, work
            time.sleep(PAUSE)
        return True

    def _note_failure(self, fault: BaseException) -> None:
        level = logging.DEBUG if self._is_failing else logging.WARNING
        self._is_failing = True
        with suppress(Exception):  # there may be no memory for a log line
            log.log(level, "%s: %s", self._complaint, fault, exc_info=not isinstance(fault, BridgeError))


def check_threads(threads: Iterable[LastingThread]) -> None:
    """Raises WorkFailing if the last try of one of the threads failed."""
    for thread in threads:
        thread.check()
