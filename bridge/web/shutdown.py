"""Limits the time that turns have to finish when their worker has to end."""

from __future__ import annotations

import time

from bridge.errors import ShuttingDown

EXTENSION = "letta-tool-bridge-shutdown"


class Shutdown:
    """Says when a worker that has to end can't wait for its turns any longer: `seconds` after begin() was called."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.since: float | None = None  # when begin() was called

    def begin(self) -> None:
        """Starts the `seconds` that turns still have. It must not wait: the handler of SIGTERM calls it."""
        if self.since is None:
            self.since = time.monotonic()

    def check(self) -> None:
        """Raises ShuttingDown if the `seconds` since begin() have passed."""
        since = self.since
        if since is not None and time.monotonic() - since >= self._seconds:
            raise ShuttingDown("The bridge is being restarted, and the agent had not finished. Send the request again.")
