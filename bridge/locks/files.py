"""Locks between the workers of one machine: locked files. The system unlocks them when their holder dies, however."""

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
    """A folder that all workers share. Each lock has two files: one for its holder, one for the next in the queue.

    Without the second file, a worker with several waiting threads would take a lock that it frees again and again,
    before another worker looks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, name: str, patience: Callable[[], bool]) -> HeldLock | None:
        queue_file = self._open_lock_file(f"{name}.next")
        try:
            if not _wait_for_lock(queue_file, patience, SLOWEST_POLL):
                return None
            return self._take_lock_file(self._folder / f"{name}.lock", patience)
        finally:
            os.close(queue_file)

    def _take_lock_file(self, path: Path, patience: Callable[[], bool]) -> HeldLock | None:
        while True:
            file, held = self._open_lock_file(path.name), None
            try:
                if not _wait_for_lock(file, patience, POLL):
                    return None
                if _is_file_at(file, path):  # else the file was removed while we waited, and there may be a new one
                    held = _FileLock(file, path, _mark_turn_begun(file))
                    return held
            finally:
                if held is None:
                    os.close(file)

    def _open_lock_file(self, name: str) -> int:
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
        """A lock holds as long as all workers find the same file."""
        return _is_file_at(self.file, self.path)

    def release(self, ended: bool) -> None:
        if ended:
            _write_mark(self.file, _ENDED)
        os.close(self.file)


def _wait_for_lock(file: int, patience: Callable[[], bool], slowest: float) -> bool:
    pause = POLL
    while not _try_to_lock(file):
        if not patience():
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, slowest)
    return True


def _try_to_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_file_at(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False


def _mark_turn_begun(file: int) -> bool:
    """Marks in the file that its new holder has not ended. Returns whether the previous one had."""
    previous_turn_ended = os.pread(file, 1, 0) == _ENDED
    _write_mark(file, _BEGUN)
    return previous_turn_ended


def _write_mark(file: int, mark: bytes) -> None:
    with suppress(OSError):  # a full disk must not end a turn
        os.pwrite(file, mark, 0)
