"""Work that one of many workers does once an interval."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class OnceAnInterval:
    """Counted by the age of a file that all workers share, so the first time is an interval after it was made.

    `interval` in seconds; 0 is never.
    """

    def __init__(self, path: Path, interval: float) -> None:
        self._path = path
        self._interval = interval
        self._next_look = 0.0

    def is_due(self) -> bool:
        """True for one caller of all workers, once an interval. In between no file is asked."""
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
