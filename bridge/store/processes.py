"""Gives each process a name that no later process gets, so that another process can find out whether it has ended."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_START_TIME_FIELD = 19  # the field of /proc/PID/stat with the process start time, counted after the name (proc(5))


def name_of_this_process() -> str:
    """Returns the name of this process, `PLACE:PID:STARTED`."""
    return f"{_boot_and_namespace()}:{os.getpid()}:{_start_time(os.getpid())}"


def process_has_ended(name: str) -> bool:
    """Returns whether the process with this name has ended. False if that can't be found out: the process is on
    another machine or in another container, or there is no /proc folder.
    """
    place, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    return bool(place) and place == _boot_and_namespace() and pid.isdigit() and _start_time(int(pid)) != started


def _boot_and_namespace() -> str:
    """Returns the ids of the boot and of our namespace of process ids, "" if unknown. Our /proc shows no others."""
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(_PROC / 'self/ns/pid').strip('pid:[]')}"
    return ""


def _start_time(pid: int) -> str:
    """Returns the start time in clock ticks since the boot, "" if there is no process. A reused id has another."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended, though its parent has not waited for it yet.
    return "" if fields[0] in "ZX" else fields[_START_TIME_FIELD]
