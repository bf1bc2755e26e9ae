"""Locks agents, so that an agent has one turn at a time among all threads, workers and machines.

Letta does not queue messages: of two at the same time, one overwrites the context that the other one made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal, Protocol
from weakref import WeakValueDictionary

from bridge.errors import BridgeError, Busy, ClientGone, HoldLost, LettaTimeout, LettaUnreachable, RunBrokenOff
from bridge.store.port import Change
from bridge.trace import current_trace

# A waiting turn looks so often, in seconds, whether its client has gone.
CHECK_INTERVAL = 0.5

# How the turn of a holder came to its end. "failed": its run is over. "lost": its worker was killed, or lost Letta in
# the middle of the run, which may go on. "unknown": nothing is noted, as for an agent's first turn.
TurnEnd = Literal["ended", "failed", "lost", "unknown"]


class HeldLock(Protocol):
    """A lock that this worker holds. `previous`: how the turn of the previous holder ended."""

    @property
    def previous(self) -> TurnEnd: ...

    def holds(self) -> bool:
        """Returns whether this worker still has the lock, as far as the worker can tell without asking Redis."""

    def release(self, end: TurnEnd, notes: Sequence[Change] = ()) -> None:
        """Makes the notes in the store and frees the lock. `end`: how this turn ended, for the next holder, who cleans
        up unless it "ended". Only logs a fault of the store.
        """


class Locker(Protocol):
    """Makes locks that only one worker can hold at a time. Every waiting worker gets the lock some time."""

    def take_lock(self, name: str, keep_waiting: Callable[[], bool]) -> HeldLock | None:
        """Waits for the lock and takes it. Returns None as soon as `keep_waiting` returns False."""


@dataclass(slots=True)
class AgentHold:
    """A lock on an agent. `previous`: how the turn before ended. `earlier_runs_ended`: what it left running is over, as
    far as anybody can tell. `has_sent`: a run may have begun in this turn. While `unfinished`, the present turn counts
    as half done, even if nothing raises.
    """

    previous: TurnEnd
    holds: Callable[[], bool]
    keeps_unfinished_mark: bool = False
    earlier_runs_ended: bool = False
    has_sent: bool = False
    unfinished: bool = False
    notes: list[Change] = field(default_factory=list)

    @property
    def previous_turn_ended(self) -> bool:
        """Returns whether the turn before is complete. If not, it may be half done."""
        return self.previous == "ended"

    def end(self, fault: BaseException | None) -> TurnEnd:
        """Returns how the present turn ended, with this fault or with none."""
        if self.unfinished or (self.has_sent and fault is not None):
            return "lost" if fault is None or _may_run_on(fault) else "failed"
        if fault is None and (self.previous_turn_ended or not self.keeps_unfinished_mark):
            return "ended"
        # Nothing was sent: what is known of the turn before stays true.
        return self.previous if self.previous in ("lost", "unknown") and not self.earlier_runs_ended else "failed"

    def note_at_end(self, changes: Sequence[Change]) -> None:
        """Has the changes made when the agent is freed, with the same request to Redis: the next holder needs them."""
        self.notes += changes

    def keep_unfinished_mark(self) -> None:
        """Keeps the mark of an unfinished previous turn for the next holder, because this holder does not clean up."""
        self.keeps_unfinished_mark = True

    def before_call(self, method: str) -> None:
        """Raises HoldLost as `check` does, and notes the call if it may begin a run."""
        self.check()
        self.has_sent = self.has_sent or method == "send_messages"

    def check(self) -> None:
        """Raises HoldLost if another turn may hold the agent, because of a long pause of the process or a lost lock."""
        if not self.holds():
            raise HoldLost("The bridge lost its hold of the agent in the middle of the turn. Send the request again.")


class AgentLocks:
    """Locks agents by their ids. Waits at most `wait` seconds for an agent.
    The threads of a worker wait in a queue in memory, and only the first of them waits for the `locker`.
    """

    def __init__(self, locker: Locker, wait: float) -> None:
        self._locker = locker
        self._wait = wait
        self._threads: WeakValueDictionary[str, _ThreadLock] = WeakValueDictionary()
        self._guard = threading.Lock()

    def deadline(self) -> float:
        """Returns the time, by `time.monotonic`, until which a turn that comes now may wait for its agent."""
        return time.monotonic() + self._wait

    @contextmanager
    def hold(
        self,
        agent_id: str,
        deadline: float | None = None,
        gone: threading.Event | None = None,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> Iterator[AgentHold]:
        """Waits until the agent is free, and locks it while the `with` block runs.
        Raises Busy at `deadline`, a time of `time.monotonic` (None: `wait` seconds from now), and ClientGone if `gone`
        is set before. Calls `while_waiting` again and again, not if the agent is free. If the block raises, the turn is
        marked as unfinished for the next holder. The trace counts the waiting, from the first try that fails.
        """
        latest = self.deadline() if deadline is None else deadline

        def goes_on() -> bool:
            while_waiting()
            return time.monotonic() < latest and not (gone is not None and gone.is_set())

        with self._guard:
            lock = self._threads.setdefault(agent_id, _ThreadLock())
        with _Patience(goes_on) as keep_waiting:
            if not lock.acquire(keep_waiting, latest):
                raise self._error_after_waiting(gone)
        try:
            with _Patience(goes_on) as keep_waiting:
                held = self._locker.take_lock(agent_id, keep_waiting)
            if held is None:
                raise self._error_after_waiting(gone)
            hold = AgentHold(held.previous, held.holds)
            end: TurnEnd = "lost"
            try:
                yield hold
                end = hold.end(None)
            except BaseException as fault:
                end = hold.end(fault)
                raise
            finally:
                held.release(end, hold.notes)
        finally:
            lock.release()

    @contextmanager
    def hold_outside_turn(self, agent_id: str, gone: threading.Event | None = None) -> Iterator[None]:
        """Locks the agent for work that is not a turn, such as the operator's. An unfinished turn stays marked."""
        with self.hold(agent_id, gone=gone) as hold:
            hold.keep_unfinished_mark()
            yield

    def _error_after_waiting(self, gone: threading.Event | None) -> Busy | ClientGone:
        if gone is not None and gone.is_set():
            return ClientGone.before_its_turn()
        return Busy(
            f"The agent is busy with another turn, and was not free within {self._wait:g} seconds (BRIDGE_WAIT).",
            retry_after=5,
        )


def _may_run_on(fault: BaseException) -> bool:
    """Returns whether the agent may still run after a turn with this fault: its end was not seen."""
    if isinstance(fault, LettaUnreachable):
        return not fault.nothing_sent
    return not isinstance(fault, BridgeError) or isinstance(fault, (LettaTimeout, RunBrokenOff, HoldLost))


class _Patience:
    """Asks `goes_on` whether a turn goes on waiting for a lock. As the locks ask only after a try that failed, it also
    counts the waiting.
    """

    def __init__(self, goes_on: Callable[[], bool]) -> None:
        self._goes_on = goes_on
        self._waiting: ExitStack | None = None

    def __enter__(self) -> Callable[[], bool]:
        return self._keep_waiting

    def __exit__(self, *failure: object) -> None:
        if self._waiting is not None:
            self._waiting.close()

    def _keep_waiting(self) -> bool:
        if self._waiting is None:
            self._waiting = ExitStack()
            self._waiting.enter_context(current_trace().measure_waiting("another turn"))
        return self._goes_on()


class _ThreadLock:
    """A lock that threads get in the order in which they came. `threading.Lock` keeps no such order."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queue: list[object] = []

    def acquire(self, keep_waiting: Callable[[], bool], latest: float) -> bool:
        """Waits for the lock. Returns False if `keep_waiting` does. Asks it each CHECK_INTERVAL, and at `latest`."""
        ticket = object()
        with self._condition:
            self._queue.append(ticket)
            while self._queue[0] is not ticket:
                if not keep_waiting():
                    self._queue.remove(ticket)
                    return False
                self._condition.wait(min(CHECK_INTERVAL, max(0.0, latest - time.monotonic())))
            return True

    def release(self) -> None:
        """Frees the lock for the thread that has waited longest."""
        with self._condition:
            self._queue.pop(0)
            self._condition.notify_all()
