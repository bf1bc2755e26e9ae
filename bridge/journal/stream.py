"""A turn runs in a thread of its own and writes its events here; whoever is connected reads them from the start.

So a reader can see to its client while the agent is silent, and a client that goes away does not end the turn.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from bridge.turn import AgentEvent, MethodChosen, Reasoning, RunStarted, Text, ToolCall


class TurnStream:
    """Append-only; one thread writes, any number read. `gone` is set when nobody will read any more.

    Each reader that waits has a bell. A condition would do the same for twice the time, which every event takes.
    """

    def __init__(self) -> None:
        self._events: list[AgentEvent] = []
        self._ended = False
        self._failure: BaseException | None = None
        self._bells: list[SimpleQueue[None]] = []
        self._guard = threading.Lock()
        self.gone = threading.Event()

    def run(self, events: Iterable[AgentEvent]) -> None:
        """Write all events, then the end, or the failure that ended them."""
        failure: BaseException | None = None
        try:
            for event in events:
                self.write(event)
        except BaseException as fault:  # readers raise it: a turn never ends in silence
            failure = fault
        self.end(failure)

    def write(self, event: AgentEvent) -> None:
        self._events.append(event)
        self._ring()

    def end(self, failure: BaseException | None = None) -> None:
        self._failure = failure
        self._ended = True
        self._ring()

    def _ring(self) -> None:
        for bell in self._bells:
            bell.put(None)

    @contextmanager
    def _bell(self) -> Iterator[SimpleQueue[None]]:
        bell: SimpleQueue[None] = SimpleQueue()
        with self._guard:
            self._bells = [*self._bells, bell]
        try:
            yield bell
        finally:
            with self._guard:
                self._bells = [other for other in self._bells if other is not bell]

    def wait_for_first(self, seconds: float) -> bool:
        """Whether there is something to send, or the end, within `seconds`; raises a failure that came before it."""
        deadline = time.monotonic() + seconds
        with self._bell() as bell:
            while not self._ended and not self._has_sign() and (left := deadline - time.monotonic()) > 0:
                _rings(bell, left)
        if self._failure is not None and not self._has_sign():
            raise self._failure
        return self._ended or self._has_sign()

    def _has_sign(self) -> bool:
        """Only what is for the client counts: a server may name the run at once and its model fail a moment later."""
        return any(isinstance(event, Reasoning | Text | ToolCall) for event in self._events)

    @property
    def method(self) -> str:
        """The method of the turn, "" as long as none is chosen."""
        return next((event.method for event in self._events[:1] if isinstance(event, MethodChosen)), "")

    def read(self, tick: float) -> Iterator[AgentEvent | None]:
        """Every event from the first on, and None whenever `tick` seconds pass without one."""
        seen = 0
        with self._bell() as bell:
            while True:
                ended = self._ended  # before the events: after the end there are no more
                fresh = self._events[seen:]
                seen += len(fresh)
                yield from fresh
                if not fresh and ended:
                    break
                if not fresh and not _rings(bell, tick):
                    yield None
        if self._failure is not None:
            raise self._failure

    def since(self, seen: int) -> list[AgentEvent]:
        """The events after the first `seen`."""
        return self._events[seen:]

    @property
    def running(self) -> bool:
        """Whether the turn has begun (it may have to wait for its agent) and not ended."""
        return bool(self._events) and not self._ended

    @property
    def run_id(self) -> str:
        """Letta's name of the run, "" while it has told none."""
        return next((event.run_id for event in reversed(self._events) if isinstance(event, RunStarted)), "")


def _rings(bell: SimpleQueue[None], seconds: float) -> bool:
    try:
        bell.get(timeout=seconds)
    except Empty:
        return False
    return True


def run_in_thread(events: Callable[[threading.Event], Iterable[AgentEvent]]) -> TurnStream:
    """`events` is given what tells that nobody reads any more."""
    feed = TurnStream()
    threading.Thread(target=feed.run, args=(events(feed.gone),), name="turn", daemon=True).start()
    return feed
