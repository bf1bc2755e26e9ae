"""Threads that wait for work, so that a piece of work costs no start of a thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import ParamSpec, TypeVar

log = logging.getLogger(__name__)

Work = Callable[[], object]
# A thread that has had no work for so many seconds ends.
IDLE = 10.0

P = ParamSpec("P")
T = TypeVar("T")


class ThreadPool(Executor):
    """Does work in at most `most` threads. A piece of work wakes one thread, the one that began to wait last, because
    its memory is still in the processor's caches. Python's own ThreadPoolExecutor wakes two threads for each piece, and
    takes them in turns. A thread without work ends after a while. The threads do not keep the process from ending.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._guard = threading.Lock()
        self._waiting: list[_Seat] = []  # threads without work
        self._queue: deque[Work] = deque()  # work without a thread
        self._count = 0
        self._is_over = False

    def run(self, work: Work) -> None:
        """Does the work in a thread, as soon as one is free. Raises RuntimeError if there is no thread left."""
        with self._guard:
            if self._is_over:
                raise RuntimeError("the threads have ended")
            if self._waiting:
                return self._waiting.pop().give(work)
            if self._count >= self._most:
                return self._queue.append(work)
            self._count += 1
        try:
            threading.Thread(target=self._work_on, args=(_Seat(work),), name=self._name, daemon=True).start()
        except BaseException:
            with self._guard:
                self._count -= 1
            raise

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        outcome: Future[T] = Future()
        self.run(partial(_settle, outcome, partial(fn, *args, **kwargs)))
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the threads when they have done all their work. Does not wait for them."""
        with self._guard:
            self._is_over = True
            while self._waiting:
                self._waiting.pop().give(None)

    def _work_on(self, seat: _Seat) -> None:
        while work := seat.take(IDLE) or self._last_work(seat):
            try:
                work()
            except BaseException:  # of any kind: the thread is needed again
                log.exception("work in a thread failed")
            del work  # frees what belongs to it
            self._find_work(seat)

    def _find_work(self, seat: _Seat) -> None:
        with self._guard:
            if self._queue:
                seat.give(self._queue.popleft())
            elif self._is_over:
                seat.give(None)
            else:
                self._waiting.append(seat)

    def _last_work(self, seat: _Seat) -> Work | None:
        """Takes a thread without work out of the pool. Returns the work that it was given at this very moment."""
        with self._guard:
            if seat not in self._waiting:
                return seat.take(0)
            self._waiting.remove(seat)
            self._count -= 1
            return None


class _Seat:
    """The place where one thread waits for its next work; None ends it."""

    def __init__(self, work: Work) -> None:
        self._work: Work | None = work
        self._bell = threading.Lock()

    def give(self, work: Work | None) -> None:
        self._work = work
        self._bell.release()

    def take(self, seconds: float) -> Work | None:
        """Waits for work, at most `seconds`. Returns None if there was none, or at the end of the pool."""
        if not self._bell.acquire(timeout=seconds):
            return None
        work, self._work = self._work, None
        return work


def _settle(outcome: Future[T], work: Callable[[], T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as fault:
        outcome.set_exception(fault)
