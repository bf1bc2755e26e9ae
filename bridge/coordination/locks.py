"""One turn at a time for an agent, between the threads of a worker and the workers of a machine.

Letta does not queue: of two messages to an agent at once, one overwrites the other's context. File locks are let go by
the system when their holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from bridge.errors import Busy

POLL = 0.02
SLOWEST_POLL = 0.2
_BEGUN, _ENDED = b"b", b"e"


class AgentLocks:
    """Locks in a folder that all workers share, one file an agent."""

    def __init__(self, folder: Path, wait: float) -> None:
        self._folder = folder
        self._wait = wait
        self._threads: WeakValueDictionary[str, _ThreadLock] = WeakValueDictionary()
        self._guard = threading.Lock()

    @contextmanager
    def hold(self, agent_id: str) -> Iterator[bool]:
        """The agent to oneself; Busy when it is not free in time. Threads queue in the worker, workers at the file.

        Yields whether the turn before is known to have come to its end: one that failed, or whose worker was killed,
        may have left something half done.
        """
        deadline = time.monotonic() + self._wait
        with self._guard:
            lock = self._threads.setdefault(agent_id, _ThreadLock())
        if not lock.acquire(deadline):
            raise self._busy()
        try:
            with self._locked_file(agent_id, deadline) as file:
                yield _settled(file)
                _write(file, _ENDED)
        finally:
            lock.release()

    @contextmanager
    def _locked_file(self, agent_id: str, deadline: float) -> Iterator[int]:
        file = os.open(self._folder / f"{agent_id}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            pause = POLL
            while not _locks(file):
                if time.monotonic() >= deadline:
                    raise self._busy()
                time.sleep(pause)
                pause = min(pause * 1.5, SLOWEST_POLL)
            yield file
        finally:
            os.close(file)

    def _busy(self) -> Busy:
        return Busy(
            f"The agent is busy with another turn, and was not free within {self._wait:g} seconds (BRIDGE_WAIT).",
            retry_after=5,
        )


class _ThreadLock:
    """First come, first served: a plain lock lets a newcomer overtake those who wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queue: list[object] = []

    def acquire(self, deadline: float) -> bool:
        ticket = object()
        with self._condition:
            self._queue.append(ticket)
            ready = self._condition.wait_for(lambda: self._queue[0] is ticket, max(0.0, deadline - time.monotonic()))
            if not ready:
                self._queue.remove(ticket)
            return ready

    def release(self) -> None:
        with self._condition:
            self._queue.pop(0)
            self._condition.notify_all()


def _locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _settled(file: int) -> bool:
    """Whether the last holder came to its end. The file says so, and from now on that the new one has not."""
    settled = os.pread(file, 1, 0) == _ENDED
    _write(file, _BEGUN)
    return settled


def _write(file: int, mark: bytes) -> None:
    # A full disk must not stop a turn.
    with suppress(OSError):
        os.pwrite(file, mark, 0)
