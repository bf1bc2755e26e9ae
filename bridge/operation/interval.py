"""Lets one of many workers do some work once in an interval."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class OnceAnInterval:
    """Says when work is due that one of the workers does once in an interval.

    The age of the file `path`, which all workers share, measures the interval. The first call makes the file, so the
    work is first due one interval after that. `interval` is in seconds; 0 means never.
    """

    def __init__(self, path: Path, interval: float) -> None:
        self._path = path
        self._interval = interval
        self._next_look = 0.0

    def is_due(self) -> bool:
        """Returns whether the caller shall do the work now: True once in each interval, to one caller of all workers.

        True begins the next interval. Before the interval has passed, the file is not read. If the file is newer than
        this machine's clock, because the clock was put back, the interval begins again. Raises OSError if the file
        can't be used.
        """
        if not self._interval or time.monotonic() < self._next_look:
            return False
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            age = time.time() - os.fstat(file).st_mtime
            due = age >= self._interval
            if due or age < 0:  # the clock was put back
                os.utime(file)
                age = 0.0
        finally:
            os.close(file)
        self._next_look = time.monotonic() + self._interval - age
        return due
