"""A turn runs in a thread of its own and writes its events here; whoever is connected reads them from the start.

So a reader can see to its client while the agent is silent, and a client that goes away does not end the turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

from bridge.turn import Event, MethodChosen, Reasoning, RunStarted, Text, ToolCall


class Feed:
    """Append-only; one thread writes, any number read. `gone` is set when nobody will read any more."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._ended = False
        self._failure: BaseException | None = None
        self._news = threading.Condition()
        self.gone = threading.Event()

    def run(self, events: Iterable[Event]) -> None:
        """Write all events, then the end, or the failure that ended them."""
        failure: BaseException | None = None
        try:
            for event in events:
                self.write(event)
        except BaseException as fault:  # readers raise it: a turn never ends in silence
            failure = fault
        self.end(failure)

    def write(self, event: Event) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def end(self, failure: BaseException | None = None) -> None:
        with self._news:
            self._failure, self._ended = failure, True
            self._news.notify_all()

    def wait_for_first(self, seconds: float) -> bool:
        """Whether there is something to send, or the end, within `seconds`; raises a failure that came before it."""
        with self._news:
            here = self._news.wait_for(lambda: self._has_sign() or self._ended, seconds)
            if self._failure is not None and not self._has_sign():
                raise self._failure
            return here

    def _has_sign(self) -> bool:
        """Only what is for the client counts: a server may name the run at once and its model fail a moment later."""
        return any(isinstance(event, Reasoning | Text | ToolCall) for event in self._events)

    @property
    def method(self) -> str:
        """The method of the turn, "" as long as none is chosen."""
        return next((event.method for event in self._events[:1] if isinstance(event, MethodChosen)), "")

    def read(self, tick: float) -> Iterator[Event | None]:
        """Every event from the first on, and None whenever `tick` seconds pass without one."""
        seen = 0
        while True:
            with self._news:
                if seen == len(self._events) and not self._ended:
                    self._news.wait(tick)
                fresh, ended = self._events[seen:], self._ended
            seen += len(fresh)
            yield from fresh
            if ended and not fresh:
                if self._failure is not None:
                    raise self._failure
                return
            if not fresh:
                yield None

    def since(self, seen: int) -> list[Event]:
        """The events after the first `seen`."""
        with self._news:
            return self._events[seen:]

    @property
    def running(self) -> bool:
        """Whether the turn has begun (it may have to wait for its agent) and not ended."""
        return bool(self._events) and not self._ended

    @property
    def run_id(self) -> str:
        """Letta's name of the run, "" while it has told none."""
        return next((event.run_id for event in reversed(self._events) if isinstance(event, RunStarted)), "")


def run_in_thread(events: Callable[[threading.Event], Iterable[Event]]) -> Feed:
    """`events` is given what tells that nobody reads any more."""
    feed = Feed()
    threading.Thread(target=feed.run, args=(events(feed.gone),), name="turn", daemon=True).start()
    return feed
