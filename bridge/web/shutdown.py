"""Gives the turns of a worker that ends some time to finish; those that do not, fail."""

from __future__ import annotations

import time

from bridge.errors import ShuttingDown

EXTENSION = "letta-tool-bridge-shutdown"


class Shutdown:
    """Turns may go on for `seconds` after begin(). Their threads call check() while they wait."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def begin(self) -> None:
        """Runs in a signal handler, so it must not wait for anything."""
        if self._since is None:
            self._since = time.monotonic()

    def check(self) -> None:
        """Raises ShuttingDown when the time is over."""
        since = self._since
        if since is not None and time.monotonic() - since >= self._seconds:
            raise ShuttingDown("The bridge is being restarted, and the agent had not finished. Send the request again.")
