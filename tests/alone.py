"""Runs a part of a test in a process of its own."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Literal, TypeVar

Result = TypeVar("Result")

LONGEST = 120.0


def run_alone(work: Callable[..., object], *values: object) -> None:
    """Calls `work`, a function of a module that forks. In a new process, no other thread of the tests is in the middle
    of a call to SQLite, whose locks a forked process would find held for ever.
    """
    result_of_process("spawn", work, *values)


def result_of_process(start: Literal["fork", "spawn"], work: Callable[..., Result], *values: object) -> Result:
    """Calls `work` with these values in another process, and returns what it returns. Fails as it does."""
    context = multiprocessing.get_context(start)
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, values, sent))
    process.start()
    sent.close()
    try:
        assert received.poll(LONGEST), f"The process came to no end within {LONGEST:.0f} s."
        result, fault = received.recv()
    except EOFError:
        result, fault = None, "The process ended early."
    finally:
        process.kill()
        process.join()
    assert not fault, fault
    return result  # type: ignore[no-any-return]


def _work(work: Callable[..., object], values: tuple[object, ...], sent: Connection) -> None:
    try:
        sent.send((work(*values), ""))
    except BaseException:
        sent.send((None, traceback.format_exc()))
