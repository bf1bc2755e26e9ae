"""Snapshots of the tools and agents on the Letta server, which all admin pages share. A snapshot takes a few calls."""

from __future__ import annotations

import hashlib
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
    """All tools and agents on the Letta server, also those not of the bridge, at the time `at` (seconds since 1970).
    Snapshots with the same names, tags and toolsets have the same `version`, also those of different workers.
    """

    at: float
    features: ServerFeatures
    tools: Sequence[Tool]
    agents: Sequence[Agent]
    version: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The newest snapshot, None if there is none, and the failure if the last try to make a newer one failed."""

    snapshot: Snapshot | None
    failure: LettaError | None = None


class Snapshots:
    """Makes and keeps one worker's snapshots. A shared counter grows with every change and so outdates them."""

    def __init__(self, gateway: Gateway, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._gateway = gateway
        self._store = store
        self._clock = clock
        self._kept: tuple[Snapshot, str | None] | None = None
        self._failure: LettaError | None = None
        self._making = threading.Lock()

    def view(self) -> View:
        """Waits for a new snapshot if the kept one is outdated or older than STALE; after FRESH, a thread makes one."""
        changes = self._change_count()
        if self._kept is not None and self._kept[1] == changes:
            snapshot = self._kept[0]
            age = self._clock() - snapshot.at
            if age < FRESH:
                return View(snapshot)
            if age < STALE:
                failure = self._failure
                self._renew_in_background()
                return View(snapshot, failure)
        return self._renew()

    def outdate(self) -> None:
        """Marks the snapshots of all workers as out of date; if the store fails, only this worker's."""
        try:
            self._store.add_to_counter(CHANGED, 1, 86_400)
        except StoreUnavailable:
            self._kept = None

    def _renew(self) -> View:
        with self._making:
            try:
                return View(self._make_snapshot())
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
            self._make_snapshot()
        except LettaError as failure:
            self._failure = failure  # the next view() shows it
        finally:
            self._making.release()

    def _make_snapshot(self) -> Snapshot:
        """Keeps the snapshot with the count of changes from before it was made."""
        changes = self._change_count()
        features, at = self._gateway.features(), self._clock()
        tools, agents = self._gateway.tools(), self._gateway.whole_agents(blocks=True)
        snapshot = Snapshot(at, features, tools, agents, _version_of(features, tools, agents))
        self._kept, self._failure = (snapshot, changes), None
        return snapshot

    def _change_count(self) -> str | None:
        """None if nothing was changed lately or the store can't be read."""
        try:
            return self._store.get(CHANGED)
        except StoreUnavailable:
            return None


def _version_of(features: ServerFeatures, tools: Sequence[Tool], agents: Sequence[Agent]) -> str:
    """Returns a digest of what the lists show. A stub's tags have the digest of its tool and since when it is idle."""
    digest = hashlib.sha256(features.version_text.encode())
    for tool in tools:
        digest.update(repr((tool.id, tool.name, tool.tags)).encode())
    for agent in agents:
        blocks = [(block.label, len(block.value)) for block in agent.blocks]
        names = (agent.id, agent.name, agent.type, agent.model.name, [tool.id for tool in agent.tools])
        digest.update(repr((names, blocks, len(agent.message_ids), agent.message_ids[-1:])).encode())
    return digest.hexdigest()
