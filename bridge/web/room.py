"""Limits the bytes of requests and replies that this worker holds, so that they do not take all of the memory."""

from __future__ import annotations

import ctypes
import sys
import threading
from contextlib import suppress

from bridge.errors import TooManyBytes

# The name of the extension by which the worker finds the app's Room.
ROOM = "letta-tool-bridge-room"
# Bytes that a worker holds: requests from their first byte until they are answered, and replies that wait for a client.
MOST_HELD = 64_000_000
# Larger ones may take three quarters of that, so that a few of them do not keep out all others.
LARGE = 1_000_000
# Smaller ones are always accepted. The number of connections limits them.
SMALL = 64_000


# The number of the option M_MMAP_THRESHOLD of glibc's mallopt().
_MMAP_THRESHOLD = -3
# Its first value. By default, glibc raises it with each larger block that is freed, and keeps what is below it.
_LARGE_BLOCK = 1 << 17


class Room:
    """Counts the bytes that are held. Threads and the event loop use it at once."""

    def __init__(self, most: int = MOST_HELD) -> None:
        self.held = 0
        self._most = most
        self._lock = threading.Lock()

    @property
    def most_for_one(self) -> int:
        """The size beyond which a request or reply can't be held now."""
        if self.held <= self._most * 3 // 4:
            return sys.maxsize
        return LARGE if self.held <= self._most else SMALL

    def add(self, size: int) -> None:
        with self._lock:
            self.held += size

    def remove(self, size: int) -> None:
        self.add(-size)

    def take(self, size: int) -> None:
        """Adds the bytes of one request. Raises TooManyBytes if there is no room for them."""
        self.add(size)
        if size > self.most_for_one:
            self.remove(size)
            raise no_room_error()


def no_room_error() -> TooManyBytes:
    return TooManyBytes("The bridge holds as many bytes of requests as it can. Try again soon.")


def return_large_blocks() -> None:
    """Makes malloc() return large blocks to the system when they are freed, also after the first of them.
    Other C libraries than glibc have no such option.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)
