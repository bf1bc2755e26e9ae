"""Limits how many turns this worker runs at once, so that threads are left for other requests."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bridge.errors import TooManyTurns


class Gate:
    """Gives slots for turns: at most `most` at once in this worker."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self, then: Callable[[], None] = lambda: None) -> Slot:
        """Takes a slot for one turn in this worker. Raises TooManyTurns at once if no slot is free.

        `then` is called when the slot is free again.
        """
        with self._lock:
            if self._inside >= self._most:
                raise TooManyTurns(
                    f"The bridge runs as many turns as it can: {self._most} (BRIDGE_MAX_TURNS). Try again soon."
                )
            self._inside += 1
        return Slot(self, then)

    def leave(self) -> None:
        """Counts one turn less. Only slots call this."""
        with self._lock:
            self._inside -= 1


class Slot:
    """A place for one turn in this worker. Its holders are the request and the turn that the request began.

    Each holder calls `leave` at its end, because either can outlast the other.
    """

    def __init__(self, gate: Gate, then: Callable[[], None]) -> None:
        self._gate = gate
        self._then = then
        self._holders = 1
        self._lock = threading.Lock()

    def share(self) -> None:
        """Adds a holder. The slot becomes free when every holder has called `leave`."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        """Takes one holder away. The last one frees the slot."""
        with self._lock:
            self._holders -= 1
            empty = self._holders == 0
        if empty:
            self._gate.leave()
            self._then()
