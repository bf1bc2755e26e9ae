"""Limits the time that turns have to finish when their worker has to end."""

from __future__ import annotations

import time

from bridge.errors import ShuttingDown

EXTENSION = "letta-tool-bridge-shutdown"


class Shutdown:
    """The end of a worker. After begin(), turns may go on for `seconds`; check() raises ShuttingDown after that."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def begin(self) -> None:
        """Starts the time. A signal handler calls it, so it must not wait for anything."""
        if self._since is None:
            self._since = time.monotonic()

    def check(self) -> None:
        """Raises ShuttingDown when the time is over. Threads that wait for a turn call it again and again."""
        since = self._since
        if since is not None and time.monotonic() - since >= self._seconds:
            raise ShuttingDown("The bridge is being restarted, and the agent had not finished. Send the request again.")
