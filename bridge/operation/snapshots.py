"""The whole Letta server as it was a moment ago: read in a few calls, whatever its size, and shared by all pages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.errors import LettaError, StoreUnavailable
from bridge.letta.capabilities import ServerFeatures
from bridge.letta.gateway import Agent, Gateway, Tool
from bridge.store.port import Store

# Until then a snapshot is shown as it is; then also, but a new one is made beside; and after the last it is too old.
FRESH = 10.0
STALE = 120.0
CHANGED = "letta changed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All tools and agents, ours and others'; `at` in seconds since 1970."""

    at: float
    features: ServerFeatures
    tools: Sequence[Tool]
    agents: Sequence[Agent]


@dataclass(frozen=True, slots=True)
class View:
    """What can be shown: the newest snapshot there is, and what kept a newer one from being made."""

    snapshot: Snapshot | None
    failure: LettaError | None = None


class Snapshots:
    """One a process. What another worker changed is noticed by a count in the store."""

    def __init__(self, gateway: Gateway, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._store = store
        self._clock = clock
        self._kept: tuple[Snapshot, str | None] | None = None
        self._making = threading.Lock()

    def view(self) -> View:
        """Never older than can be, and at once where there is one that is not too old."""
        changes = self._changes()
        if self._kept is not None and self._kept[1] == changes:
            snapshot = self._kept[0]
            age = self._clock() - snapshot.at
            if age < FRESH:
                return View(snapshot)
            if age < STALE:
                self._renew_beside()
                return View(snapshot)
        return self._renewed()

    def outdate(self) -> None:
        """Something was changed on the server: no worker shows what it was before."""
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

    def _renew_beside(self) -> None:
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
            return  # what there is gets too old, and then whoever looks is told
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
