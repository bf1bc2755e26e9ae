"""What one of many workers does once an interval, whoever comes first."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bridge.errors import BridgeError

log = logging.getLogger(__name__)


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


class Background:
    """Work that is done beside the turns when it is due. No turn waits for it, and none fails by it."""

    def __init__(self, name: str, is_due: Callable[[], bool], work: Callable[[], object]) -> None:
        self._name = name
        self._is_due = is_due
        self._work = work

    def start_if_due(self) -> None:
        try:
            due = self._is_due()
        except OSError as fault:
            log.warning("whether a %s is due can't be told: %s", self._name, fault)
            return
        if due:
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError as fault:  # there is no thread left
                log.warning("a %s is put off: %s", self._name, fault)

    def _run(self) -> None:
        try:
            log.info("%s: %s", self._name, self._work())
        except BridgeError as failure:
            log.warning("a %s failed: %s", self._name, failure.message)
