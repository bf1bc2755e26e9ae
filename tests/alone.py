"""Runs what forks in a process of its own. There no other thread of the tests is in the middle of a call to SQLite,
whose locks a forked process would find held for ever.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection

LONGEST = 60.0


def run_alone(work: Callable[..., object], *values: object) -> None:
    """Calls `work`, a function of a module, with these values in a new process. Fails as it does."""
    context = multiprocessing.get_context("spawn")
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(work, values, sent), daemon=False)
    process.start()
    sent.close()
    try:
        assert received.poll(LONGEST), f"no end within {LONGEST:.0f} s"
        fault = received.recv()
    except EOFError:
        fault = "The process ended early."
    finally:
        process.kill()
        process.join()
    assert not fault, fault


def _work(work: Callable[..., object], values: tuple[object, ...], sent: Connection) -> None:
    try:
        work(*values)
        sent.send("")
    except BaseException:
        sent.send(traceback.format_exc())
