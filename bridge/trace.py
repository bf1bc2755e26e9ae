"""The trace of one request: its ids, its calls to Letta and its times, for headers, logs and metrics.

The current trace is a context variable. Other threads get it through `bind_to_current_trace` or `set_current_trace`.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar, get_args

from bridge.turn import WaitCause

Item = TypeVar("Item")
Result = TypeVar("Result")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._=+/@:-]{1,200}")
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


class Trace:
    """One client request: its ids, calls to Letta and times. Many threads write to it. A missing or invalid
    `request_id` is replaced. `trace_id` is that of the W3C header `traceparent`, "" if invalid.
    """

    def __init__(self, request_id: str = "", traceparent: str = "") -> None:
        self.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(16)
        parent = _TRACEPARENT.fullmatch(traceparent)
        self.trace_id = parent[1] if parent else ""
        self._flags = parent[2] if parent else ""
        self._span = secrets.token_hex(8) if parent else ""
        self.key_name = ""
        self.is_turn = False
        self.failure = ""
        self.agent_id = ""
        self.agent_name = ""
        self.agent_type = ""
        self.calls: Counter[str] = Counter()
        self.reads_stream = False  # the turn's thread reads a stream of Letta, and does what it puts off
        self._put_off: Callable[[], None] | None = None
        self._begun = time.perf_counter()
        self._letta = _BusyTime()
        self._waiting = _BusyTime()
        self._waits: dict[WaitCause, _BusyTime] = {cause: _BusyTime() for cause in get_args(WaitCause)}

    @property
    def traceparent(self) -> str:
        """The `traceparent` header for calls to Letta, with the bridge as the parent; "" if the client's is invalid."""
        return f"00-{self.trace_id}-{self._span}-{self._flags}" if self.trace_id else ""

    @property
    def letta_calls(self) -> int:
        return sum(self.calls.copy().values())

    @property
    def seconds(self) -> float:
        """The seconds since the request came in."""
        return time.perf_counter() - self._begun

    @property
    def letta_seconds(self) -> float:
        """The seconds with at least one call to Letta under way, including the model's work."""
        return self._letta.seconds

    @property
    def waited_seconds(self) -> float:
        """The seconds that the request waited for anything of WaitCause."""
        return self._waiting.seconds

    @property
    def waits(self) -> dict[str, float]:
        """The seconds that the request waited, by cause. Has only the causes for which it waited."""
        by_cause = {str(cause): time.seconds for cause, time in self._waits.items()}
        return {cause: seconds for cause, seconds in by_cause.items() if seconds > 0}

    def set_agent(self, agent_id: str, name: str, agent_type: str) -> None:
        self.agent_id, self.agent_name, self.agent_type = agent_id, name, agent_type

    def count_letta_call(self, call: str) -> None:
        """Counts a call to Letta of this kind, such as "GET /v1/tools/"."""
        self.calls[call] += 1

    def put_off(self, work: Callable[[], None]) -> bool:
        """Has `work` done just before the thread waits for Letta again, once however often it is put off. Returns False
        if the thread reads no stream: then nobody does it.
        """
        if self.reads_stream:
            self._put_off = work
        return self.reads_stream

    def do_what_was_put_off(self) -> None:
        work, self._put_off = self._put_off, None
        if work is not None:
            work()

    def measure_letta_call(self) -> AbstractContextManager[None]:
        """Adds the time inside each `with` block to `letta_seconds`."""
        return self._letta

    @contextmanager
    def measure_waiting(self, cause: WaitCause) -> Iterator[None]:
        """Adds the time inside the `with` block to `waited_seconds` and to the `waits` for this cause."""
        with self._waiting, self._waits[cause]:
            yield


class _BusyTime:
    """Counts the seconds in which at least one thread is in a `with` block of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._since = 0.0
        self._sum = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._since = time.perf_counter()
            self._inside += 1

    def __exit__(self, *failure: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._sum += time.perf_counter() - self._since

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._sum + (time.perf_counter() - self._since if self._inside else 0.0)


_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current_trace() -> Trace:
    """Returns the trace of this thread's request; a new one, which is not kept or reported, if there is no request."""
    return _CURRENT.get() or Trace()


def current_trace_or_none() -> Trace | None:
    return _CURRENT.get()


def set_current_trace(trace: Trace | None) -> None:
    _CURRENT.set(trace)


def bind_to_current_trace(action: Callable[[Item], Result]) -> Callable[[Item], Result]:
    """Returns `action` as a function for other threads, with the present trace of this thread."""
    trace = current_trace_or_none()

    def run_in_trace(item: Item) -> Result:
        set_current_trace(trace)
        return action(item)

    return lambda item: copy_context().run(run_in_trace, item)
