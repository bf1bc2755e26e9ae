"""Reads from /proc what processes cost, and how much of the machine other processes used."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")
# If other processes use more of the machine than this, the times are not reliable.
BUSY = 0.10


def tree(pid: int) -> list[int]:
    """Returns the process and all its descendants."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            waiting += map(int, _read(task).split())
    return found


def cpu_seconds(pid: int) -> float:
    """Returns the user and system time of the process and its living descendants."""
    return sum(_cpu(one) for one in tree(pid))


def memory_mb(pid: int) -> float:
    """Returns the proportional set size of the process and its descendants, in which shared memory counts once."""
    return sum(_pss(one) for one in tree(pid)) / 1024


def description() -> str:
    """Describes the machine in one line."""
    models = {line.partition(": ")[2] for line in _read(Path("/proc/cpuinfo")).splitlines() if "model name" in line}
    total = _read(Path("/proc/meminfo")).split(maxsplit=2)[1]
    python = platform.python_version()
    return (
        f"{os.cpu_count()} x {', '.join(models)}, {int(total) / 1024**2:.0f} GB, {platform.system()}, Python {python}"
    )


@dataclass(slots=True)
class OtherProcesses:
    """Measures the part of the machine, with steal, that processes other than `ours` used from `begin` to `share`."""

    ours: list[int]
    _busy: float = 0.0
    _total: float = 0.0
    _spent: float = 0.0

    def begin(self) -> None:
        self._busy, self._total = _machine()
        self._spent = self._own()

    def share(self) -> float:
        busy, total = _machine()
        spent = self._own() - self._spent
        return max(0.0, (busy - self._busy - spent) / max(total - self._total, 0.01))

    def _own(self) -> float:
        return time.process_time() + sum(map(cpu_seconds, self.ours))


def _machine() -> tuple[float, float]:
    """Returns the (busy, all) seconds of all cores since the start of the machine."""
    user, nice, system, idle, waiting, hard, soft, steal = map(int, _read(Path("/proc/stat")).split()[1:9])
    busy = user + nice + system + hard + soft + steal
    return busy / _TICK, (busy + idle + waiting) / _TICK


def _cpu(pid: int) -> float:
    fields = _read(Path(f"/proc/{pid}/stat")).rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK if fields else 0.0


def _pss(pid: int) -> int:
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
