"""One turn at a time for an agent, between the threads of a worker, the workers of a machine and machines.

Letta does not queue: of two messages to an agent at once, one overwrites the other's context.
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
LOOK_UP = 0.5


class HeldLock(Protocol):
    """A lock that is held. `previous_turn_ended`: the holder before is known to have come to its end."""

    @property
    def previous_turn_ended(self) -> bool: ...

    def holds(self) -> bool:
        """Whether it is held still, as far as can be told without asking anybody."""

    def release(self, ended: bool) -> None:
        """Let go. `ended`: the holder came to its end."""


class Locker(Protocol):
    """Locks between processes. Of those that wait none is overtaken for ever."""

    def take(self, name: str, patience: Callable[[], bool]) -> HeldLock | None:
        """The lock, once it is free; None when `patience` says no before that. It is asked before every pause."""


@dataclass(slots=True)
class AgentHold:
    """The right to change an agent, until it is released.

    `previous_turn_ended` is False when the previous turn failed or its worker was killed: it may have left something
    half done.
    """

    previous_turn_ended: bool
    holds: Callable[[], bool]
    passed_on: bool = False

    def pass_on(self) -> None:
        """This holder did not clean up after the previous turn: keep that turn marked as unfinished."""
        self.passed_on = True

    def check(self) -> None:
        """Raises when the agent may be another's by now: this process was stopped, or the store was lost."""
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
        """Until when somebody who comes now may wait."""
        return time.monotonic() + self._wait

    @contextmanager
    def hold(
        self, agent_id: str, deadline: float | None = None, gone: threading.Event | None = None
    ) -> Iterator[AgentHold]:
        """The agent to oneself; Busy when it is not free in time, ClientGone once `gone` is set."""
        latest = self.deadline() if deadline is None else deadline

        def patience() -> bool:
            return time.monotonic() < latest and not (gone is not None and gone.is_set())

        with self._guard:
            lock = self._threads.setdefault(agent_id, _ThreadLock())
        if not lock.acquire(patience, latest):
            raise self._refusal(gone)
        try:
            held = self._locker.take(agent_id, patience)
            if held is None:
                raise self._refusal(gone)
            lease, ended = AgentHold(held.previous_turn_ended, held.holds), False
            try:
                yield lease
                ended = lease.previous_turn_ended or not lease.passed_on
            finally:
                held.release(ended)
        finally:
            lock.release()

    @contextmanager
    def borrow(self, agent_id: str) -> Iterator[None]:
        """Lock the agent for work that is not a turn. The unfinished-turn mark stays as it is."""
        with self.hold(agent_id) as lease:
            lease.pass_on()
            yield

    def _refusal(self, gone: threading.Event | None) -> Busy | ClientGone:
        if gone is not None and gone.is_set():
            return ClientGone.before_its_turn()
        return Busy(
            f"The agent is busy with another turn, and was not free within {self._wait:g} seconds (BRIDGE_WAIT).",
            retry_after=5,
        )


class _ThreadLock:
    """First come, first served: a plain lock lets a newcomer overtake those who wait."""

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
                self._condition.wait(min(LOOK_UP, max(0.0, latest - time.monotonic())))
            return True

    def release(self) -> None:
        with self._condition:
            self._queue.pop(0)
            self._condition.notify_all()
