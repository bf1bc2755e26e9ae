"""Gives an agent to one turn at a time, among the threads of a worker, the workers of a machine, and machines.

Letta does not queue: of two messages to an agent at the same time, one overwrites the other's context.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakValueDictionary

from bridge.errors import Busy, ClientGone, HoldLost

# How soon a waiting turn notices that its client has gone.
CHECK_INTERVAL = 0.5


class HeldLock(Protocol):
    """A lock that this process holds. `previous_turn_ended`: it is known that the previous holder came to its end."""

    @property
    def previous_turn_ended(self) -> bool: ...

    def holds(self) -> bool:
        """Returns whether the lock is still ours, as far as this process knows without asking the store."""

    def release(self, ended: bool) -> None:
        """Frees the lock. `ended`: the holder came to its end."""


class Locker(Protocol):
    """Locks between processes. No process that waits is overtaken for ever."""

    def take(self, name: str, patience: Callable[[], bool]) -> HeldLock | None:
        """Waits for the lock and takes it. Returns None once `patience`, which is asked before every pause, says no."""


@dataclass(slots=True)
class AgentHold:
    """The right to change an agent, until it is released.

    `previous_turn_ended` is False when the previous turn failed or its worker was killed: it may have left something
    half done.
    """

    previous_turn_ended: bool
    holds: Callable[[], bool]
    keeps_unfinished_mark: bool = False

    def keep_unfinished_mark(self) -> None:
        """Says that this holder did not clean up after the previous turn. That turn stays marked as unfinished."""
        self.keeps_unfinished_mark = True

    def check(self) -> None:
        """Raises HoldLost if another turn may have the agent by now: this process was stopped, or the store lost it."""
        if not self.holds():
            raise HoldLost("The bridge lost its hold of the agent in the middle of the turn. Send the request again.")


class AgentLocks:
    """Threads queue in the worker, and the first of each worker queues with those of the others."""

    def __init__(self, locker: Locker, wait: float) -> None:
        self._locker = locker
        self._wait = wait
        self._threads: WeakValueDictionary[str, _ThreadLock] = WeakValueDictionary()
        self._guard = threading.Lock()

    def deadline(self) -> float:
        """Returns until when a turn that comes now may wait."""
        return time.monotonic() + self._wait

    @contextmanager
    def hold(
        self, agent_id: str, deadline: float | None = None, gone: threading.Event | None = None
    ) -> Iterator[AgentHold]:
        """Locks the agent. Raises Busy if it is not free in time, ClientGone once `gone` is set."""
        latest = self.deadline() if deadline is None else deadline

        def patience() -> bool:
            return time.monotonic() < latest and not (gone is not None and gone.is_set())

        with self._guard:
            lock = self._threads.setdefault(agent_id, _ThreadLock())
        if not lock.acquire(patience, latest):
            raise self._error_after_waiting(gone)
        try:
            held = self._locker.take(agent_id, patience)
            if held is None:
                raise self._error_after_waiting(gone)
            hold, ended = AgentHold(held.previous_turn_ended, held.holds), False
            try:
                yield hold
                ended = hold.previous_turn_ended or not hold.keeps_unfinished_mark
            finally:
                held.release(ended)
        finally:
            lock.release()

    @contextmanager
    def hold_outside_turn(self, agent_id: str) -> Iterator[None]:
        """Locks the agent for work that is not a turn. The mark of an unfinished turn stays as it is."""
        with self.hold(agent_id) as hold:
            hold.keep_unfinished_mark()
            yield

    def _error_after_waiting(self, gone: threading.Event | None) -> Busy | ClientGone:
        if gone is not None and gone.is_set():
            return ClientGone.before_its_turn()
        return Busy(
            f"The agent is busy with another turn, and was not free within {self._wait:g} seconds (BRIDGE_WAIT).",
            retry_after=5,
        )


class _ThreadLock:
    """First come, first served. With a plain lock, a thread that comes later may overtake those that wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queue: list[object] = []

    def acquire(self, patience: Callable[[], bool], latest: float) -> bool:
        ticket = object()
        with self._condition:
            self._queue.append(ticket)
            while self._queue[0] is not ticket:
                if not patience():
                    self._queue.remove(ticket)
                    return False
                self._condition.wait(min(CHECK_INTERVAL, max(0.0, latest - time.monotonic())))
            return True

    def release(self) -> None:
        with self._condition:
            self._queue.pop(0)
            self._condition.notify_all()
