"""Lets one of many workers do some work once in an interval."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


class OnceAnInterval:
    """Says when work is due that one of the workers does once in `interval` seconds; 0 means never. The age of the file
    `path`, which all workers share, measures the interval. The first call makes the file.
    """

    def __init__(self, path: Path, interval: float) -> None:
        self._path = path
        self._interval = interval
        self._next_look = 0.0

    def is_due(self) -> bool:
        """Returns True once in each interval, to one caller of all workers. A file in the future (the clock was put
        back) begins the interval again. Raises OSError if the file can't be used.
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
