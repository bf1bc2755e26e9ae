"""Measures how fast a client sends a request, or takes a reply."""

from __future__ import annotations

# Bytes a second that a client must send or take on average. A modem is faster.
SLOWEST_RATE = 4_000


class Pace:
    """Times are seconds of one monotonic clock. `began`: when the first byte was expected."""

    def __init__(self, began: float) -> None:
        self.began = began
        self._latest = began
        self._size = 0

    def note(self, size: int, now: float) -> None:
        if size:
            self._size += size
            self._latest = now

    def is_overdue(self, now: float, pause: float) -> bool:
        """Returns whether the client has paused for longer than `pause` seconds, or is slower than SLOWEST_RATE."""
        return now - self._latest > pause or now - self.began > pause + self._size / SLOWEST_RATE
