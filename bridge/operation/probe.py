"""Checks now and then whether a part that the service needs answers: Letta, the store, the worker's own threads."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from bridge import trace
from bridge.errors import BridgeError

# Seconds for which the result of a check is used again. So the workers differ for no longer than that.
KEPT_SECONDS = 5.0
# Seconds that a request waits for all checks.
LONGEST_SECONDS = 5.0
# How many requests wait for one check. Anybody may send more: they get the result before, and take no thread.
MOST_WAITING = 4
OK = "ok"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: "ok", the code of its error, "failed" for an error without a code, or "timeout".
    `message` is for the operator, `reason` for everybody; both may be "".
    """

    state: str
    message: str = ""
    reason: str = ""


LATE = Finding("timeout")


class Probe:
    """The check of one part, which runs in a thread of its own, and the result of its last run. A check raises a
    BridgeError if its part does not answer. Changes are logged.
    """

    def __init__(self, name: str, check: Callable[[], object]) -> None:
        self._name = name
        self._check = check
        self._changed = threading.Condition()
        self._running = False
        self._waiting = 0
        self._found: Finding | None = None
        self._good_until = 0.0

    def start_check(self) -> None:
        """Starts a check, unless one is running or the result of the last one is still used."""
        with self._changed:
            if self._running or time.monotonic() < self._good_until:
                return
            threading.Thread(target=self._run_check, name=f"check-{self._name}", daemon=True).start()
            self._running = True  # set after the start, which fails if there is no thread left

    def wait(self, deadline: float) -> Finding:
        """Returns the result of the check that runs, or else of the last one. `deadline`: by the monotonic clock."""
        with self._changed:
            if self._running and self._waiting >= MOST_WAITING:
                return self._found or LATE
            self._waiting += 1
            ended = self._changed.wait_for(lambda: not self._running, max(0.0, deadline - time.monotonic()))
            self._waiting -= 1
            return self._found if ended and self._found else LATE

    def find(self) -> Finding:
        """Returns a result that is at most KEPT_SECONDS old. Takes at most LONGEST_SECONDS."""
        self.start_check()
        return self.wait(time.monotonic() + LONGEST_SECONDS)

    def _run_check(self) -> None:
        """Runs the check without a trace, so that its calls to Letta count for no request."""
        trace.set_current_trace(None)
        found = Finding("failed")
        try:
            self._check()
            found = Finding(OK)
        except BridgeError as failure:
            found = Finding(failure.code or "failed", failure.message, getattr(failure, "reason", ""))
        finally:
            self._log_change(found)
            with self._changed:
                self._found, self._running = found, False
                self._good_until = time.monotonic() + KEPT_SECONDS
                self._changed.notify_all()

    def _log_change(self, found: Finding) -> None:
        before = self._found or Finding(OK)
        if found == before:
            return
        if found.state == OK:
            log.info("ready again: %s", self._name)
        else:
            log.warning("not ready: %s", found.message or self._name, extra={"fields": {"code": found.state}})
