"""The memory that some work takes, measured in a process without the other threads of the tests."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

from tests.alone import result_of_process

Result = TypeVar("Result")


def memory_held() -> int:
    """The bytes that were taken since the process began, and are still held."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def most_memory() -> int:
    """The most bytes that were held at once since the process began."""
    return tracemalloc.get_traced_memory()[1]


def measured(work: Callable[[], Result]) -> Result:
    """Runs `work`, which measures, in a copy of this process that has one thread. Returns what it returns."""
    return result_of_process("fork", _measure, work)


def _measure(work: Callable[[], Result]) -> Result:
    names = _make_room_for_names()
    gc.collect()
    tracemalloc.start()
    result = work()
    del names
    return result


def _make_room_for_names() -> list[str]:
    """Has Python enlarge its table of all names, which takes megabytes after many tests. It happens at every so many
    new names, such as those in a compiled text, and would count for the work in which it happens.
    """
    names, taken = list[str](), 0
    tracemalloc.start()
    while taken < 64 * 1024:
        name = f"name {len(names)} of {os.getpid()}"
        before, _ = tracemalloc.get_traced_memory()
        name = sys.intern(name)
        taken = tracemalloc.get_traced_memory()[0] - before
        names.append(name)
    tracemalloc.stop()
    return names
