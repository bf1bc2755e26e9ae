"""How many turns a worker runs at once: with more, no threads would be left for everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable

from bridge.errors import TooManyTurns


class Gate:
    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self, also: Callable[[], None] = lambda: None) -> Slot:
        """A slot for one turn; TooManyTurns at once when none is free. `also` is called when the slot is left."""
        with self._lock:
            if self._inside >= self._most:
                raise TooManyTurns(
                    f"The bridge runs as many turns as it can: {self._most} (BRIDGE_MAX_TURNS). Try again soon."
                )
            self._inside += 1
        return Slot(self, also)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1

    @property
    def inside(self) -> int:
        return self._inside


class Slot:
    """Taken until the request and the turn that it began are both over: either can outlast the other."""

    def __init__(self, gate: Gate, also: Callable[[], None]) -> None:
        self._gate = gate
        self._also = also
        self._holders = 1
        self._lock = threading.Lock()

    def share(self) -> None:
        """One more holder: the slot is taken until it, too, has called `leave`."""
        with self._lock:
            self._holders += 1

    def leave(self) -> None:
        with self._lock:
            self._holders -= 1
            empty = self._holders == 0
        if empty:
            self._gate.leave()
            self._also()
