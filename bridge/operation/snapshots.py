"""Snapshots of the tools and agents on the Letta server, which all admin pages share. A snapshot takes a few calls."""

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
    """All tools and agents that were on the Letta server at one time, also those that the bridge did not make.

    `at` is that time in seconds since 1970.
    """

    at: float
    features: ServerFeatures
    tools: Sequence[Tool]
    agents: Sequence[Agent]


@dataclass(frozen=True, slots=True)
class View:
    """The newest snapshot, None if there is none, and the failure if a newer snapshot could not be made."""

    snapshot: Snapshot | None
    failure: LettaError | None = None


class Snapshots:
    """Makes and keeps the snapshots of one worker.

    A counter in the shared store grows with every change on the server. A snapshot with an older count is out of date.
    """

    def __init__(self, gateway: Gateway, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._store = store
        self._clock = clock
        self._kept: tuple[Snapshot, str | None] | None = None
        self._making = threading.Lock()

    def view(self) -> View:
        """Returns the kept snapshot if it is younger than STALE seconds, otherwise waits for a new snapshot.

        Also waits if the bridge changed something on the Letta server after the kept snapshot. A snapshot that is older
        than FRESH seconds is returned while a thread makes a new one.
        """
        changes = self._change_count()
        if self._kept is not None and self._kept[1] == changes:
            snapshot = self._kept[0]
            age = self._clock() - snapshot.at
            if age < FRESH:
                return View(snapshot)
            if age < STALE:
                self._renew_in_background()
                return View(snapshot)
        return self._renew()

    def outdate(self) -> None:
        """Marks the snapshots of all workers as out of date, because something on the Letta server was changed.

        If the store fails, only this worker's snapshot is dropped.
        """
        try:
            self._store.add_to_counter(CHANGED, 1, 86_400)
        except StoreUnavailable:
            self._kept = None

    def _renew(self) -> View:
        """Makes a new snapshot and waits for it. If that fails, returns the kept snapshot with the failure."""
        with self._making:
            try:
                return View(self._make_snapshot())
            except LettaError as failure:
                return View(self._kept[0] if self._kept else None, failure)

    def _renew_in_background(self) -> None:
        """Starts a thread that makes a new snapshot, unless a snapshot is being made already."""
        if not self._making.acquire(blocking=False):
            return
        try:
            threading.Thread(target=self._renew_and_release, name="snapshot", daemon=True).start()
        except RuntimeError:  # there is no thread left
            self._making.release()
            raise

    def _renew_and_release(self) -> None:
        """Makes a new snapshot and releases the lock that `_renew_in_background` took. Ignores a failure of Letta."""
        try:
            self._make_snapshot()
        except LettaError:
            return  # once the kept snapshot is too old, view() shows the failure
        finally:
            self._making.release()

    def _make_snapshot(self) -> Snapshot:
        """Reads tools and agents from the Letta server, and keeps the snapshot with the count of changes before it."""
        changes = self._change_count()
        features, at = self._gateway.features(), self._clock()
        snapshot = Snapshot(at, features, self._gateway.tools(), self._gateway.whole_agents(blocks=True))
        self._kept = snapshot, changes
        return snapshot

    def _change_count(self) -> str | None:
        """Returns the shared counter of changes. None if nothing was changed lately or the store can't be read."""
        try:
            return self._store.get(CHANGED)
        except StoreUnavailable:
            return None
