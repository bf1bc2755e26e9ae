"""Runs work that is due in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from bridge.errors import BridgeError

log = logging.getLogger(__name__)


class BackgroundWork:
    """Work that runs in its own thread when `is_due` says so, one at a time. `work` returns its outcome; failures are
    only logged.
    """

    def __init__(self, name: str, is_due: Callable[[], bool], work: Callable[[], object]) -> None:
        self._name = name
        self._is_due = is_due
        self._work = work
        self._running = threading.Lock()

    def start_if_due(self) -> None:
        """Starts the work if it is due and not running, and does not wait for it. Only logs a failure to start."""
        if not self._running.acquire(blocking=False):
            return
        started = False
        try:
            if self._is_due():
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
                started = True
        except OSError as fault:
            log.warning("cannot find out whether a %s is due: %s", self._name, fault)
        except RuntimeError as fault:  # there is no thread left
            log.warning("a %s is put off: %s", self._name, fault)
        finally:
            if not started:
                self._running.release()

    def _run(self) -> None:
        try:
            log.info("%s: %s", self._name, self._work())
        except BridgeError as failure:
            log.warning("a %s failed: %s", self._name, failure.message)
        finally:
            self._running.release()
