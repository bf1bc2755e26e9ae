"""Names the processes of this machine, by names that are never used again. So the end of a process is known at once.

It works only where there is a /proc, and between processes that see each other there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_START_TIME_FIELD = 19  # the field of /proc/PID/stat with the time of the start, counted after the name (proc(5))


def name_of_this_process() -> str:
    """Returns `PLACE:PID:STARTED` of this process."""
    return f"{_boot_and_namespace()}:{os.getpid()}:{_start_time(os.getpid())}"


def process_has_ended(name: str) -> bool:
    """Returns whether the process of that name is known to have ended. False if nothing is known about it."""
    place, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    return bool(place) and place == _boot_and_namespace() and pid.isdigit() and _start_time(int(pid)) != started


def _boot_and_namespace() -> str:
    """Returns the boot of the machine and the namespace of process ids; "" where they can't be read."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(_PROC / 'self/ns/pid').strip('pid:[]')}"
    return ""


def _start_time(pid: int) -> str:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended, though its parent has not waited for it yet.
    return "" if fields[0] in "ZX" else fields[_START_TIME_FIELD]
