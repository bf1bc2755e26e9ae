"""Makes several calls to Letta at the same time, but not so many that other turns have to wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bridge.trace import bind_to_current_trace

MAX_THREADS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


def call_concurrently(action: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Returns the results in the order of the items. If a call fails, calls that have not begun are not made, and the
    exception is raised when all others have ended. All calls count in the caller's trace.
    """
    if not items:
        return []
    with ThreadPoolExecutor(min(MAX_THREADS, len(items)), thread_name_prefix="sync") as pool:
        return list(pool.map(bind_to_current_trace(action), items))
