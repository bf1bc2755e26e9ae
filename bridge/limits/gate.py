"""How many turns a worker runs at once: beyond that, threads would be lacking for everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bridge.errors import TooManyTurns


class Gate:
    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._lock = threading.Lock()

    def enter(self, also: Callable[[], None] = lambda: None) -> Slot:
        """A place for one turn; TooManyTurns at once when there is none. `also` is called when it is left."""
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
    """Taken until both the request and the turn that it began are over: either can outlast the other.

    A request may be over before its turn's thread has come to begin; such a turn takes no place any more.
    """

    def __init__(self, gate: Gate, also: Callable[[], None]) -> None:
        self._gate = gate
        self._also = also
        self._parts = 1
        self._over = False
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self._lock:
            self._parts += 1
        try:
            yield
        finally:
            self.leave()

    def leave(self) -> None:
        with self._lock:
            self._parts -= 1
            empty = self._parts == 0 and not self._over
            self._over = self._over or empty
        if empty:
            self._gate.leave()
            self._also()
