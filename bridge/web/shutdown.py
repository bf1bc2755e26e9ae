"""A worker that is told to end: its turns may go on for a while, and then their clients are told."""

from __future__ import annotations

import time

from bridge.errors import ShuttingDown

EXTENSION = "letta-tool-bridge-closing"


class Shutdown:
    """`seconds` is how long turns may go on once the worker was told. Asked by many threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def begin(self) -> None:
        """Called by a signal handler: it must not wait for anything."""
        if self._since is None:
            self._since = time.monotonic()

    def check(self) -> None:
        """Raise ShuttingDown when the time is over."""
        since = self._since
        if since is not None and time.monotonic() - since >= self._seconds:
            raise ShuttingDown("The bridge is being restarted, and the agent had not finished. Send the request again.")
