"""Limits the requests a minute and turns at once of each API key, counted over all workers of a machine.

The counts are kept in files, because the operating system releases the locks of files however a worker dies.
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


class KeySlot:
    """A slot for one turn of an API key, held until `leave`. Without a locked `file`, the slot limits nothing."""

    def __init__(self, file: int | None = None) -> None:
        self._file = file

    def leave(self) -> None:
        """Gives the slot back. A second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class Allowance:
    """Counts each API key's requests and turns in files of `folder`, by a `clock` that all workers have in common."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._clock = clock

    def count_request(self, key: str, rate: int) -> None:
        """Counts one request of the API key. Raises Busy if the key has no request left.
        The key gets `rate` requests a minute, evenly over time. It can save `rate` requests and make them at once.
        """
        with _os_errors_as_unavailable():
            file = self._open_file(f"{key}.rate")
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                left, now = self._requests_left(file, rate)
                os.pwrite(file, _BUCKET.pack(left - 1 if left >= 1 else left, now), 0)
            finally:
                os.close(file)
        if left < 1:
            raise Busy(
                f"The key {key!r} may make {rate} requests a minute.",
                code="rate_limit_exceeded",
                retry_after=max(1, math.ceil((1 - left) * MINUTE / rate)),
            )

    def _requests_left(self, file: int, rate: int) -> tuple[float, float]:
        """Returns how many requests a key may make now, and the present time. A new key may make `rate` requests."""
        now = self._clock()
        written = os.pread(file, _BUCKET.size, 0)
        if len(written) < _BUCKET.size:
            return float(rate), now
        left, then = _BUCKET.unpack(written)
        # If the clock was put back, the key gets no requests for that time, and loses none.
        return min(float(rate), left + max(0.0, now - then) * rate / MINUTE), now

    def take_slot(self, key: str, most: int) -> KeySlot:
        """Locks one of the key's `most` files for a turn. Raises Busy at once if all of them are locked."""
        for number in range(most):
            with _os_errors_as_unavailable():
                file = self._open_file(f"{key}.{number}.turn")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
            else:
                return KeySlot(file)
        raise Busy(f"The key {key!r} has {most} turns under way, which is all that it may have.", code="too_many_turns")

    def _open_file(self, name: str) -> int:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def _os_errors_as_unavailable() -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        raise StoreUnavailable(
            f"The bridge can't write how much its keys have used (BRIDGE_DATA_DIR, keys): {fault.strerror}."
        ) from fault
