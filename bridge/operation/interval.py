"""Work that one of many workers does once in an interval."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class OnceAnInterval:
    """Measures the interval by the age of a file that all workers share.

    The first time is one interval after the file was made. `interval` is in seconds; 0 means never.
    """

    def __init__(self, path: Path, interval: float) -> None:
        self._path = path
        self._interval = interval
        self._next_look = 0.0

    def is_due(self) -> bool:
        """Returns True to one caller of all workers, once in each interval. Until then, it does not read the file."""
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
