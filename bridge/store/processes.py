"""Processes of this machine, by names that are never used again: one that was killed is known to be gone at once.

Only where there is a /proc, and among processes that see each other there; of all others nothing is known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_STARTED = 19  # the field of /proc/PID/stat that tells when, counted behind the name (proc(5))


def own_name() -> str:
    """`PLACE:PID:STARTED` of this process."""
    return f"{_place()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether the process of that name is known to have ended."""
    place, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    return bool(place) and place == _place() and pid.isdigit() and _started(int(pid)) != started


def _place() -> str:
    """The boot of the machine and the space of process ids in it; "" where that can't be told."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(_PROC / 'self/ns/pid').strip('pid:[]')}"
    return ""


def _started(pid: int) -> str:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended, though its parent has not looked yet.
    return "" if fields[0] in "ZX" else fields[_STARTED]
