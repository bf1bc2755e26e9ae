"""The two kinds of store, for tests of both: a file on one machine and a real Redis."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from bridge.locks.agents import Locker
from bridge.locks.files import FileLocker
from bridge.locks.leases import LeaseLocker
from bridge.store.port import Change, RemoveList, Store
from bridge.store.redis import RedisServer, RedisStore
from bridge.store.sqlite import LocalStore
from testbed.redis import Redis

Kind = Literal["local", "redis"]
# What stores and locks promise must not fail even once.
KINDS = ("local", pytest.param("redis", marks=[pytest.mark.servers, pytest.mark.strict]))


@contextmanager
def shared_store(
    kind: Kind, folder: Path, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], Store]]:
    """Yields a function that opens the same store each time, as each worker does. Redis has its own clock."""
    if kind == "local":
        yield lambda: LocalStore(folder / "shared.db", clock)
        return
    with Redis() as server:
        yield lambda: RedisStore(RedisServer(server.url))


class MemoryStore:
    """The methods of a store that reservations of names need."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._lock = threading.Lock()

    def put_if_free(self, key: str, value: str, keep: float) -> str | None:
        with self._lock:
            there = self.values.setdefault(key, value)
        return None if there == value else there

    def remove(self, *keys: str) -> None:
        with self._lock:
            for key in keys:
                self.values.pop(key, None)


class FailingStore:
    """A store whose calls fail with `fault` while it is set: those that are named, or all."""

    def __init__(self, store: Store, *calls: str, fault: Exception | None = None) -> None:
        self._store = store
        self._calls = calls
        self.fault = fault

    def __getattr__(self, call: str) -> Any:
        if self.fault is not None and (not self._calls or call in self._calls):
            raise self.fault
        return getattr(self._store, call)


class EmptiedStore:
    """A store that loses all its data when `empty` is called."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._times = 0

    def empty(self) -> None:
        self._times += 1

    def change(
        self, changes: Sequence[Change], needs: str = "", unchanged: Mapping[str, str | None] | None = None
    ) -> bool:
        conditions = {self._name(key): value for key, value in (unchanged or {}).items()}
        return self._store.change([*map(self._renamed, changes)], needs and self._name(needs), conditions)

    def _renamed(self, change: Change) -> Change:
        if isinstance(change, RemoveList) and change.unless:
            return RemoveList(self._name(change.key), self._name(change.unless))
        return replace(change, key=self._name(change.key))

    def __getattr__(self, call: str) -> Any:
        return lambda key, *others: getattr(self._store, call)(self._name(key), *others)

    def _name(self, key: str) -> str:
        return f"{self._times} {key}"


def locker(place: str) -> Locker:
    """Returns the locks in a folder, or in the Redis at a URL."""
    if place.startswith("redis:"):
        return LeaseLocker(RedisServer(place))
    return FileLocker(Path(place), store_at(place))


def store_at(place: str) -> Store:
    """Returns the store beside these locks."""
    return RedisStore(RedisServer(place)) if place.startswith("redis:") else LocalStore(Path(place) / "shared.db")


@contextmanager
def lock_place(kind: Kind, folder: Path) -> Iterator[str]:
    """Yields where the locks are, as a text that another process can get: a folder or a URL."""
    if kind == "local":
        yield str(folder)
        return
    with Redis() as server:
        yield server.url
