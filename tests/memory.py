"""The memory that some work takes, measured in a process without the other threads of the tests."""

from __future__ import annotations

import gc
import multiprocessing
import traceback
import tracemalloc
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

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
    context = multiprocessing.get_context("fork")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(work, sent), daemon=True)
    process.start()
    sent.close()
    try:
        result, fault = received.recv()
    except EOFError:
        fault = "The process ended early."
    process.join()
    assert not fault, fault
    return result  # type: ignore[no-any-return]


def _measure(work: Callable[[], object], sent: Connection) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        sent.send((work(), ""))
    except BaseException:
        sent.send((None, traceback.format_exc()))
