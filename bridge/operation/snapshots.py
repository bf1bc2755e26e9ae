"""Copies of what is on the Letta server, read in a few calls whatever its size, and shared by all pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.errors import LettaError, StoreUnavailable
from bridge.letta.capabilities import ServerFeatures
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.store.port import Store

# Ages of a snapshot in seconds. After FRESH it is shown while a thread makes a new one; after STALE it is not shown.
FRESH = 10.0
STALE = 120.0
CHANGED = "letta changed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All tools and agents, also those that the bridge did not make. `at` is in seconds since 1970."""

    at: float
    features: ServerFeatures
    tools: Sequence[Tool]
    agents: Sequence[Agent]


@dataclass(frozen=True, slots=True)
class View:
    """The newest snapshot there is, and the failure if a newer one could not be made."""

    snapshot: Snapshot | None
    failure: LettaError | None = None


class Snapshots:
    """The snapshots of one worker. A counter in the store tells it that another worker changed something."""

    def __init__(self, gateway: Gateway, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._store = store
        self._clock = clock
        self._kept: tuple[Snapshot, str | None] | None = None
        self._making = threading.Lock()

    def view(self) -> View:
        """Returns the kept snapshot if it is not too old, else waits for a new one."""
        changes = self._changes()
        if self._kept is not None and self._kept[1] == changes:
            snapshot = self._kept[0]
            age = self._clock() - snapshot.at
            if age < FRESH:
                return View(snapshot)
            if age < STALE:
                self._renew_in_background()
                return View(snapshot)
        return self._renewed()

    def outdate(self) -> None:
        """Makes all workers read the server again: something on it was changed."""
        try:
            self._store.count(CHANGED, 1, 86_400)
        except StoreUnavailable:
            self._kept = None

    def _renewed(self) -> View:
        with self._making:
            try:
                return View(self._make())
            except LettaError as failure:
                return View(self._kept[0] if self._kept else None, failure)

    def _renew_in_background(self) -> None:
        if not self._making.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._renew_and_release, name="snapshot", daemon=True).start()
        except RuntimeError:  # there is no thread left
            self._making.release()
            raise

    def _renew_and_release(self) -> None:
        try:
            self._make()
        except LettaError:
            return  # once the kept snapshot is too old, view() shows the failure
        finally:
            self._making.release()

    def _make(self) -> Snapshot:
        changes = self._changes()
        features, at = self._gateway.features(), self._clock()
        snapshot = Snapshot(at, features, self._gateway.tools(), self._gateway.whole_agents(blocks=True))
        self._kept = snapshot, changes
        return snapshot

    def _changes(self) -> str | None:
        try:
            return self._store.get(CHANGED)
        except StoreUnavailable:
            return None
