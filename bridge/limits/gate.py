"""Limits how many turns a worker runs at once, so that threads are left for everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bridge.errors import TooManyTurns


class Gate:
    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self, then: Callable[[], None] = lambda: None) -> Slot:
        """Takes a slot for one turn. Raises TooManyTurns at once if none is free. `then` is called when it is free."""
        with self._lock:
            if self._inside >= self._most:
                raise TooManyTurns(
                    f"The bridge runs as many turns as it can: {self._most} (BRIDGE_MAX_TURNS). Try again soon."
                )
            self._inside += 1
        return Slot(self, then)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1


class Slot:
    """Taken until the request and the turn that it began are both over: either can outlast the other."""

    def __init__(self, gate: Gate, then: Callable[[], None]) -> None:
        self._gate = gate
        self._then = then
        self._holders = 1
        self._lock = threading.Lock()

    def share(self) -> None:
        """Adds a holder. The slot is free when every holder has called `leave`."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        with self._lock:
            self._holders -= 1
            empty = self._holders == 0
        if empty:
            self._gate.leave()
            self._then()
