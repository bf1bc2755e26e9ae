"""Passes an attempt's events from its thread to its readers, so that a client that leaves does not end the turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from queue import Empty, SimpleQueue

from bridge.journal.batches import End
from bridge.trace import current_trace
from bridge.turn import (
    AgentEvent,
    FormatChecked,
    FormatOutcome,
    MethodChosen,
    Reasoning,
    RunStarted,
    Text,
    ToolCall,
)

Kinds = tuple[type[AgentEvent], ...]
# Events that the client sees. Only these show that the model works: a Letta server may name the run, and its model may
# fail a moment later.
SHOWN: Kinds = (Reasoning, Text, ToolCall)
# Events that come in pieces, for which the clients' threads need not be woken.
PIECES: Kinds = (Text, Reasoning)
# Events with which it is known whether the agent's final text has the form that the client wants, or is not checked.
FORMAT_KNOWN: Kinds = (FormatChecked, ToolCall)


class TurnStream:
    """The events of one attempt so far; `end` is None until its end. `gone` is set when no client waits any more."""

    def __init__(self, events: Iterable[AgentEvent] = (), end: End | None = None) -> None:
        self.events: list[AgentEvent] = list(events)
        self.end = end
        self._kinds = {type(event) for event in self.events}
        self.gone = threading.Event()
        self._bells: list[Bell] = []
        self._guard = threading.Lock()

    def write(self, event: AgentEvent) -> None:
        """Adds an event, and has the readers served. For a piece of text, just before this thread waits for the next
        piece: a reader that is woken earlier waits for the interpreter, and is woken a second time.
        """
        self.events.append(event)
        self._kinds.add(type(event))
        if not (isinstance(event, PIECES) and current_trace().put_off(self._serve_readers)):
            self._serve_readers()

    def _serve_readers(self) -> None:
        """Has the new events sent by this thread for the readers that allow it, and wakes the others."""
        for bell in self._bells:
            if not (bell.for_end or (bell.send_pieces and bell.send_pieces())):
                bell.queue.put(None)

    def finish(self, end: End) -> None:
        self.end = end
        for bell in self._bells:
            bell.queue.put(None)

    def reader(self) -> Reader:
        """Returns a new reader, which reads the events from the first on."""
        bell = Bell()
        with self._guard:
            self._bells = [*self._bells, bell]
        return Reader(self, bell)

    def leave(self, bell: Bell) -> None:
        with self._guard:
            self._bells = [other for other in self._bells if other is not bell]

    def has_any(self, kinds: Kinds) -> bool:
        """Whether there is an event of one of these kinds."""
        return not self._kinds.isdisjoint(kinds)

    @property
    def chosen(self) -> MethodChosen | None:
        """The event that begins the turn, None until its interception method is chosen."""
        return next((event for event in self.events if isinstance(event, MethodChosen)), None)

    @property
    def format_outcome(self) -> FormatOutcome | None:
        """What the check of the agent's final text found; None if it is not checked yet, or not at all."""
        return next((event.outcome for event in reversed(self.events) if isinstance(event, FormatChecked)), None)

    @property
    def run_id(self) -> str:
        """The id of Letta's run, "" while it is unknown."""
        return next((event.run_id for event in reversed(self.events) if isinstance(event, RunStarted)), "")


class Bell:
    """The queue at which one reader waits, with an item for each event. With a `threading.Condition`, each event took
    twice the time. `for_end`: the reader waits for the end only, and is not woken by events. `send_pieces` sends the
    unread events without waking the reader, and returns False if it can't.
    """

    def __init__(self) -> None:
        self.queue: SimpleQueue[None] = SimpleQueue()
        self.for_end = False
        self.send_pieces: Callable[[], bool] | None = None


class Reader:
    """Reads the events of a stream from the first on, for one client. One thread reads: that of the client's request.
    After `let_others_send`, the thread that writes the events sends pieces of text while the reader's thread waits.
    """

    def __init__(self, stream: TurnStream, bell: Bell) -> None:
        self._stream = stream
        self._bell = bell
        self._seen = 0
        self._is_wanted = False  # a thread that sent pieces needs that of the request
        self._awake = threading.Lock()  # held by the reader's thread, except while it waits in `read`
        self._awake.acquire()

    def let_others_send(self, send: Callable[[Sequence[AgentEvent]], bool]) -> None:
        """Has the thread that writes an event give it to `send` if the reader's thread waits in `read` then, and all
        unread events are pieces of text. They count as read. `send` never waits, and returns whether it needs nothing
        of the reader's thread; otherwise `read` returns at once.
        """
        self._bell.send_pieces = partial(self._send_unread, send)

    def _send_unread(self, send: Callable[[Sequence[AgentEvent]], bool]) -> bool:
        if not self._awake.acquire(blocking=False):
            return False
        try:
            fresh = self._stream.events[self._seen :]
            if not all(isinstance(event, PIECES) for event in fresh):
                return False
            self._seen += len(fresh)
            self._is_wanted = not send(fresh) or self._is_wanted
            return not self._is_wanted
        finally:
            self._awake.release()

    def read(self, seconds: float) -> Sequence[AgentEvent]:
        """Returns the unread events, for which it waits at most `seconds`; no events if none came or all were read."""
        stream, deadline = self._stream, 0.0
        while len(stream.events) == self._seen and stream.end is None and not self._is_wanted:
            deadline = deadline or time.monotonic() + seconds
            if not self._rest(deadline - time.monotonic()):
                break
        self._is_wanted = False
        fresh = stream.events[self._seen :]
        self._seen += len(fresh)
        return fresh

    def read_whole(self, seconds: float) -> Sequence[AgentEvent]:
        """Returns the unread events when the stream has ended; no events if it does not end within `seconds`."""
        self._bell.for_end = True
        deadline = time.monotonic() + seconds
        while self._stream.end is None:
            if not self._wait_for_bell(deadline - time.monotonic()):
                return ()
        return self.read(0.0)

    def wait_for_any(self, kinds: Kinds, seconds: float) -> None:
        """Waits for the end or an event of one of these kinds, at most `seconds`. The events stay unread."""
        deadline = time.monotonic() + seconds
        while (
            self._stream.end is None
            and not self._stream.has_any(kinds)
            and self._wait_for_bell(deadline - time.monotonic())
        ):
            pass

    @property
    def at_end(self) -> bool:
        """Whether the attempt has ended and all its events were read."""
        return self._stream.end is not None and len(self._stream.events) == self._seen

    def close(self) -> None:
        self._stream.leave(self._bell)

    def _rest(self, seconds: float) -> bool:
        """Waits for the bell, while other threads may send."""
        self._awake.release()
        try:
            return self._wait_for_bell(seconds)
        finally:
            self._awake.acquire()

    def _wait_for_bell(self, seconds: float) -> bool:
        try:
            self._bell.queue.get(timeout=max(0.0, seconds))
        except Empty:
            return False
        return True
