"""Limits how many requests of a kind this worker serves at once, so that threads are left for others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from bridge.errors import BridgeError


class Gate:
    """Gives slots: at most `most` at once in this worker. `refusal` makes the error for one more."""

    def __init__(self, most: int, refusal: Callable[[], BridgeError]) -> None:
        self._most = most
        self._refusal = refusal
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self, then: Callable[[], None] = lambda: None) -> Slot:
        """Takes a slot. Raises the refusal if none is free. Calls `then` when the slot's last holder has left."""
        with self._lock:
            if self._inside >= self._most:
                raise self._refusal()
            self._inside += 1
        return Slot(self, then)

    def leave(self) -> None:
        """Counts one slot less. Only `Slot.leave` calls this, when the slot's last holder has left."""
        with self._lock:
            self._inside -= 1


class Slot:
    """A place for one request. A turn's request and the turn each leave it, because either can outlast the other.
    `until_free` is closed when the last has left.
    """

    def __init__(self, gate: Gate, then: Callable[[], None]) -> None:
        self.until_free = ExitStack()
        self.until_free.callback(then)
        self.until_free.callback(gate.leave)
        self._holders = 1
        self._lock = threading.Lock()

    def share(self) -> None:
        """Adds a holder. The slot becomes free when every holder has called `leave`."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        with self._lock:
            self._holders -= 1
            empty = self._holders == 0
        if empty:
            self.until_free.close()
