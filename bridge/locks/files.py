"""Locks between the workers of one machine: locked files, which the operating system unlocks when a worker dies."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bridge.errors import StoreUnavailable
from bridge.locks.agents import HeldLock, TurnEnd
from bridge.store.port import Change, Store

log = logging.getLogger(__name__)

# Seconds between two tries to lock a file, at first and at most.
POLL = 0.01
SLOWEST_POLL = 0.05
# What a lock file contains, by how the turn of its last holder ended. It begins as lost.
_MARKS: dict[TurnEnd, bytes] = {"lost": b"b", "ended": b"e", "failed": b"f", "unknown": b"u"}
_ENDS = {mark: end for end, mark in _MARKS.items()}


class FileLocker:
    """Takes locks in a folder that all workers share.
    Each lock has two files: one is locked by the holder, one by the worker that is next. Without the second file, a
    worker with several waiting threads would take a lock that it has just freed before another worker tries.
    `store` gets the notes of holders. Without it, there are none.
    """

    def __init__(self, folder: Path, store: Store | None = None) -> None:
        self._folder = str(folder)  # paths as text: a Path takes longer than the lock itself
        self._store = store

    def take_lock(self, name: str, keep_waiting: Callable[[], bool]) -> HeldLock | None:
        """Locks `NAME.next`, then `NAME.lock`, the lock itself. So one worker at a time waits for `NAME.lock`."""
        queue_file = self._open_lock_file(f"{name}.next")
        try:
            if not _wait_for_lock(queue_file, keep_waiting, SLOWEST_POLL):
                return None
            return self._take_lock_file(f"{name}.lock", keep_waiting)
        finally:
            os.close(queue_file)

    def _take_lock_file(self, name: str, keep_waiting: Callable[[], bool]) -> HeldLock | None:
        path = f"{self._folder}/{name}"
        while True:
            file, held = self._open_lock_file(name), None
            try:
                if not _wait_for_lock(file, keep_waiting, POLL):
                    return None
                if _is_file_at(file, path):  # if not, the file was removed while we waited: try again with a new one
                    held = _FileLock(file, path, _mark_turn_begun(file), self._store)
                    return held
            finally:
                if held is None:
                    os.close(file)

    def _open_lock_file(self, name: str) -> int:
        try:
            return os.open(f"{self._folder}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise StoreUnavailable(
                f"The bridge can't write what its workers share (BRIDGE_DATA_DIR, locks): {fault.strerror}."
            ) from fault


@dataclass(frozen=True, slots=True)
class _FileLock:
    file: int
    path: str
    previous: TurnEnd
    store: Store | None

    def holds(self) -> bool:
        """Returns whether the locked file is still at its path. If it was removed, other workers lock a new file."""
        return _is_file_at(self.file, self.path)

    def release(self, end: TurnEnd, notes: Sequence[Change] = ()) -> None:
        try:
            if notes and self.store is not None:
                self.store.change(notes)
        except StoreUnavailable as fault:
            log.warning("what a turn leaves for the next could not be noted: %s", fault.message)
        finally:
            _write_mark(self.file, end)
            os.close(self.file)


def _wait_for_lock(file: int, keep_waiting: Callable[[], bool], slowest: float) -> bool:
    """Locks the file when it is free. `slowest` is the longest pause between two tries, in seconds."""
    pause = POLL
    while not _try_to_lock(file):
        if not keep_waiting():
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


def _is_file_at(file: int, path: str) -> bool:
    """Returns whether the open file is still at this path. False if the file was removed or replaced."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _mark_turn_begun(file: int) -> TurnEnd:
    """Marks the new turn as begun. Returns how the previous turn ended."""
    previous = _ENDS.get(os.pread(file, 1, 0), "unknown")
    _write_mark(file, "lost")
    return previous


def _write_mark(file: int, end: TurnEnd) -> None:
    with suppress(OSError):  # a full disk must not end a turn
        os.pwrite(file, _MARKS[end], 0)
