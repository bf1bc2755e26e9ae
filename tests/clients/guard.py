"""Ends all processes of a scratch home when its standard input ends, so also when its owner has ended.

    python guard.py HOME

It is a process of its own, so that clients do not outlive tests that were killed. It needs only Python.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

SETTLE_SECONDS = 20.0
BETWEEN_LOOKS_SECONDS = 0.05


def living_in(home: Path) -> dict[int, str]:
    """Returns the processes with this home and their command lines. Without /proc it finds none."""
    needle = f"HOME={home}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def end_those_living_in(home: Path) -> dict[int, str]:
    """Kills the processes, also those in sessions of their own; returns those that did not end."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while left := _seen_in_two_looks(home):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            break
        time.sleep(BETWEEN_LOOKS_SECONDS)
    return left


def _seen_in_two_looks(home: Path) -> dict[int, str]:
    """Looks twice, because a process shows no environment in the middle of its exec."""
    if seen := living_in(home):
        return seen
    time.sleep(BETWEEN_LOOKS_SECONDS)
    return living_in(home)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    left = end_those_living_in(Path(sys.argv[1]))
    sys.exit(f"these processes of a client do not end: {left}" if left else 0)
