"""The trace of one request: its ids, its calls to Letta and its times, for headers, logs and metrics.

It is a context variable. A thread that works for a request gets it through `in_current_trace` or `set_current`.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar, copy_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._=+/@:-]{1,200}")
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})")


class Trace:
    """The ids of a request and what it has cost so far. Many threads write to it."""

    def __init__(self, request_id: str = "", traceparent: str = "") -> None:
        self.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else secrets.token_hex(16)
        parent = _TRACEPARENT.fullmatch(traceparent)
        self.trace_id = parent[1] if parent else ""
        self._flags = parent[2] if parent else ""
        self._span = secrets.token_hex(8)
        self.key_name = ""
        self.is_turn = False
        self.failure = ""
        self.agent_id = ""
        self.agent_name = ""
        self.agent_type = ""
        self.calls: Counter[str] = Counter()
        self._begun = time.perf_counter()
        self._letta = _BusyTime()
        self._waits = _BusyTime()

    @property
    def traceparent(self) -> str:
        """The header for Letta: the caller's trace, with this service as the parent. "" when the caller sent none."""
        return f"00-{self.trace_id}-{self._span}-{self._flags}" if self.trace_id else ""

    @property
    def letta_calls(self) -> int:
        return sum(self.calls.copy().values())

    @property
    def seconds(self) -> float:
        """The time since the request came in."""
        return time.perf_counter() - self._begun

    @property
    def letta_seconds(self) -> float:
        """The time in which at least one call to Letta was under way, including the model's work."""
        return self._letta.seconds

    @property
    def waited_seconds(self) -> float:
        """The time that the request waited for other turns of the agent."""
        return self._waits.seconds

    def set_agent(self, agent_id: str, name: str, agent_type: str) -> None:
        """Remembers the agent that the request is for."""
        self.agent_id, self.agent_name, self.agent_type = agent_id, name, agent_type

    def count_call(self, call: str) -> None:
        self.calls[call] += 1

    def calling_letta(self) -> AbstractContextManager[None]:
        return self._letta.during()

    def waiting(self) -> AbstractContextManager[None]:
        return self._waits.during()


class _BusyTime:
    """Counts the seconds in which at least one thread was busy. Threads that are busy at once count once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._since = 0.0
        self._sum = 0.0

    @contextmanager
    def during(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._since = time.perf_counter()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._sum += time.perf_counter() - self._since

    @property
    def seconds(self) -> float:
        with self._lock:
            return self._sum + (time.perf_counter() - self._since if self._inside else 0.0)


_CURRENT: ContextVar[Trace | None] = ContextVar("trace", default=None)


def current() -> Trace:
    """The trace of the request that this thread works for, or a new one that is not reported."""
    return _CURRENT.get() or Trace()


def current_or_none() -> Trace | None:
    return _CURRENT.get()


def set_current(trace: Trace | None) -> None:
    """Says for which request this thread works from now on."""
    _CURRENT.set(trace)


def in_current_trace(action: Callable[[Item], Result]) -> Callable[[Item], Result]:
    """The action for other threads, which then work for the request of this thread."""
    trace = current_or_none()

    def run(item: Item) -> Result:
        set_current(trace)
        return action(item)

    return lambda item: copy_context().run(run, item)


@contextmanager
def counted_as_waiting(held: AbstractContextManager[Result]) -> Iterator[Result]:
    """Enters `held` and counts the time until it is entered or refused as waiting."""
    with ExitStack() as stack:
        with current().waiting():
            value = stack.enter_context(held)
        yield value
