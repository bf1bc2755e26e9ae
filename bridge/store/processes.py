"""Gives each process a name that no later process gets, so that another process can find out whether it has ended.

That needs a /proc folder, in which both processes see each other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_START_TIME_FIELD = 19  # the field of /proc/PID/stat with the process start time, counted after the name (proc(5))


def name_of_this_process() -> str:
    """Returns the name of this process, `PLACE:PID:STARTED`.

    PLACE is what `_boot_and_namespace` returns, STARTED is the process start time that `_start_time` returns.
    """
    return f"{_boot_and_namespace()}:{os.getpid()}:{_start_time(os.getpid())}"


def process_has_ended(name: str) -> bool:
    """Returns whether the process with this name has ended.

    Returns False if that can't be found out: the process is on another machine or in another container, or there is no
    /proc folder.
    """
    place, _, rest = name.partition(":")
    pid, _, started = rest.partition(":")
    return bool(place) and place == _boot_and_namespace() and pid.isdigit() and _start_time(int(pid)) != started


def _boot_and_namespace() -> str:
    """Returns the id of the machine's boot and the id of our namespace of process ids; "" if one can't be read.

    Only a process with the same two ids is found in our /proc folder by its process id.
    """
    with suppress(OSError):
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(_PROC / 'self/ns/pid').strip('pid:[]')}"
    return ""


def _start_time(pid: int) -> str:
    """Returns the process start time, in the kernel's clock ticks since the boot; "" if no living process has the id.

    A later process may get the same id, but has another start time.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    # A zombie has ended, though its parent has not waited for it yet.
    return "" if fields[0] in "ZX" else fields[_START_TIME_FIELD]
