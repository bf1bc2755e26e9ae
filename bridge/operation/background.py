"""Work in a thread of its own, beside the turns."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from bridge.errors import BridgeError

log = logging.getLogger(__name__)


class Background:
    """Work that is done beside the turns when it is due. No turn waits for it, and none fails by it."""

    def __init__(self, name: str, is_due: Callable[[], bool], work: Callable[[], object]) -> None:
        self._name = name
        self._is_due = is_due
        self._work = work

    def start_if_due(self) -> None:
        try:
            due = self._is_due()
        except OSError as fault:
            log.warning("whether a %s is due can't be told: %s", self._name, fault)
            return
        if due:
            try:
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
            except RuntimeError as fault:  # there is no thread left
                log.warning("a %s is put off: %s", self._name, fault)

    def _run(self) -> None:
        try:
            log.info("%s: %s", self._name, self._work())
        except BridgeError as failure:
            log.warning("a %s failed: %s", self._name, failure.message)
