"""Removes the stubs that a refused turn made, which a sweep would leave on the Letta server for a day."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bridge.letta.gateway import Gateway
from bridge.sync.cleanup import delete_made_stubs
from bridge.sync.new_stubs import NewStubs

# Seconds between a refusal and the removal. A client that corrects its request finds its stubs until then, and the
# stubs of several refused turns are removed together.
WAIT = 30.0
# How many stubs may wait for their removal. Sweeps find the others.
MOST = 10_000


class RefusedStubs:
    """The stubs of refused turns of this worker that wait for their removal."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._waiting: dict[str, tuple[str, str]] = {}  # a tool's id: its name and its stub's digest
        self._lock = threading.Lock()

    def add(self, new: NewStubs) -> None:
        """Adds the stubs that a turn made before it was refused."""
        with self._lock:
            room = MOST - len(self._waiting)
            self._waiting.update({one.tool_id: (one.stub.name, one.stub.digest) for one in new.bindings[:room]})

    def are_waiting(self) -> bool:
        with self._lock:
            return bool(self._waiting)

    def remove(self, pause: Callable[[float], None] = time.sleep) -> str:
        """Deletes the stubs that no agent has, also those that are added while it works. Returns words for the log."""
        count = 0
        while self.are_waiting():
            pause(WAIT)
            with self._lock:
                taken, self._waiting = self._waiting, {}
            count += len(delete_made_stubs(self._gateway, taken, pause))
        return f"{count} deleted"
