"""Locks between the workers of one machine: files, which the system lets go of when their holder dies, however."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import StoreUnavailable
from bridge.locks.agents import HeldLock

POLL = 0.01
SLOWEST_POLL = 0.05
_BEGUN, _ENDED = b"b", b"e"


class FileLocker:
    """A folder that all workers share, two files a lock: who has it, and who is next.

    Without the second one a worker that lets go and has others waiting would take it again before another one looks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, patience: Callable[[], bool]) -> HeldLock | None:
        next_one = self._open(f"{name}.next")
        try:
            if not _locked(next_one, patience, SLOWEST_POLL):
                return None
            return self._hold(self._folder / f"{name}.lock", patience)
        finally:
            os.close(next_one)

    def _hold(self, path: Path, patience: Callable[[], bool]) -> HeldLock | None:
        while True:
            file, held = self._open(path.name), None
            try:
                if not _locked(file, patience, POLL):
                    return None
                if _is_at(file, path):  # else it was removed while we waited, and there is another one, or none
                    held = _FileLock(file, path, _settled(file))
                    return held
            finally:
                if held is None:
                    os.close(file)

    def _open(self, name: str) -> int:
        try:
            return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise StoreUnavailable(
                f"The bridge can't write what its workers share (BRIDGE_DATA_DIR, locks): {fault.strerror}."
            ) from fault


@dataclass(frozen=True, slots=True)
class _FileLock:
    file: int
    path: Path
    previous_turn_ended: bool

    def holds(self) -> bool:
        """A lock is one as long as everybody finds the same file."""
        return _is_at(self.file, self.path)

    def release(self, ended: bool) -> None:
        if ended:
            _write(self.file, _ENDED)
        os.close(self.file)


def _locked(file: int, patience: Callable[[], bool], slowest: float) -> bool:
    pause = POLL
    while not _try(file):
        if not patience():
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, slowest)
    return True


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _settled(file: int) -> bool:
    """Whether the last holder came to its end. The file says so, and from now on that the new one has not."""
    previous_turn_ended = os.pread(file, 1, 0) == _ENDED
    _write(file, _BEGUN)
    return previous_turn_ended


def _write(file: int, mark: bytes) -> None:
    # A full disk must not end a turn.
    with suppress(OSError):
        os.pwrite(file, mark, 0)
