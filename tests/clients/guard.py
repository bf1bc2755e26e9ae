"""Ends what lives in a scratch home, when it is told to or when whoever started it has gone.

    python guard.py HOME        waits for the end of its standard input

A process of its own, so that clients do not outlive tests that were killed. Needs nothing but Python.
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
    """The processes whose home is this one, with their command lines. Where there is no /proc: none are seen."""
    needle = f"HOME={home}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def end_those_living_in(home: Path) -> dict[int, str]:
    """Kill them, those too that have put themselves into sessions of their own; the ones that would not go."""
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
    """Those that either of two looks sees: in the middle of its exec a process shows no environment."""
    if seen := living_in(home):
        return seen
    time.sleep(BETWEEN_LOOKS_SECONDS)
    return living_in(home)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    left = end_those_living_in(Path(sys.argv[1]))
    sys.exit(f"these processes of a client do not end: {left}" if left else 0)
