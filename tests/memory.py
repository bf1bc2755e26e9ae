"""The memory that some work takes, measured in a process without the other threads of the tests."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import traceback
import tracemalloc
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

Result = TypeVar("Result")

LONGEST = 120.0


def memory_held() -> int:
    """The bytes that were taken since the process began, and are still held."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def most_memory() -> int:
    """The most bytes that were held at once since the process began."""
    return tracemalloc.get_traced_memory()[1]


def measured(work: Callable[[], Result]) -> Result:
    """Runs `work`, which measures, in a copy of this process that has one thread. Returns what it returns."""
    context = multiprocessing.get_context("fork")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(work, sent), daemon=True)
    process.start()
    sent.close()
    try:
        result, fault = received.recv() if received.poll(LONGEST) else (None, "The process came to no end.")
    except EOFError:
        fault = "The process ended early."
    process.kill()
    process.join()
    assert not fault, fault
    return result  # type: ignore[no-any-return]


def _measure(work: Callable[[], object], sent: Connection) -> None:
    names = _make_room_for_names()
    gc.collect()
    tracemalloc.start()
    try:
        sent.send((work(), ""))
    except BaseException:
        sent.send((None, traceback.format_exc()))
    del names


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
