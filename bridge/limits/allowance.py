"""How much each key may use: requests a minute and turns at once, counted by all workers of a machine.

In files, as the system lets go of their locks when a worker dies, however it dies.
"""

from __future__ import annotations

import fcntl
import math
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bridge.errors import Busy, StoreUnavailable

MINUTE = 60.0
_BUCKET = struct.Struct("<dd")


class Place:
    """One turn of a key, until it is left."""

    def __init__(self, file: int | None = None) -> None:
        self._file = file

    def leave(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class Allowance:
    """`folder` is made when it is first needed. `clock` tells the time of day, as it is compared between workers."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def spend(self, key: str, rate: int) -> None:
        """One request of the key; Busy when it made `rate` in the last minute. All of them may come at once."""
        with _told():
            file = self._open(f"{key}.rate")
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                left, now = self._left(file, rate)
                os.pwrite(file, _BUCKET.pack(left - 1 if left >= 1 else left, now), 0)
            finally:
                os.close(file)
        if left < 1:
            raise Busy(
                f"The key {key!r} may make {rate} requests a minute.",
                code="rate_limit_exceeded",
                retry_after=max(1, math.ceil((1 - left) * MINUTE / rate)),
            )

    def _left(self, file: int, rate: int) -> tuple[float, float]:
        now = self._clock()
        written = os.pread(file, _BUCKET.size, 0)
        if len(written) < _BUCKET.size:
            return float(rate), now
        left, then = _BUCKET.unpack(written)
        # A clock that was put back gives nothing and takes nothing.
        return min(float(rate), left + max(0.0, now - then) * rate / MINUTE), now

    def begin(self, key: str, most: int) -> Place:
        """A place for a turn of the key; Busy at once when it has `most` already."""
        for number in range(most):
            with _told():
                file = self._open(f"{key}.{number}.turn")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
            else:
                return Place(file)
        raise Busy(f"The key {key!r} has {most} turns under way, which is all that it may have.", code="too_many_turns")

    def _open(self, name: str) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise StoreUnavailable(
            f"The bridge can't write how much its keys have used (BRIDGE_DATA_DIR, keys): {fault.strerror}."
        ) from fault
