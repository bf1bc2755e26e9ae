"""Several calls to Letta at a time, but not so many that they keep other turns waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bridge.trace import in_current_trace

AT_ONCE = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


def at_once(action: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """The results in order. When one fails, those that have begun still end before its failure is raised."""
    if not items:
        return []
    with ThreadPoolExecutor(min(AT_ONCE, len(items)), thread_name_prefix="sync") as pool:
        return list(pool.map(in_current_trace(action), items))
