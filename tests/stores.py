"""The kinds of store, for tests that hold for each: the file of one machine and a real Redis."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from bridge.locks.agents import Locker
from bridge.locks.files import FileLocker
from bridge.locks.leases import LeaseLocker
from bridge.store.port import Store
from bridge.store.redis import RedisServer, RedisStore
from bridge.store.sqlite import LocalStore
from testbed.redis import Redis

Kind = Literal["local", "redis"]
KINDS = ("local", pytest.param("redis", marks=pytest.mark.servers))


@contextmanager
def shared_store(
    kind: Kind, folder: Path, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[], Store]]:
    """What opens one and the same store, as each worker does. Redis has a clock of its own."""
    if kind == "local":
        yield lambda: LocalStore(folder / "shared.db", clock)
        return
    with Redis() as server:
        yield lambda: RedisStore(RedisServer(server.url))


def locker(place: str) -> Locker:
    """The locks of a folder, or of the Redis of a URL."""
    return LeaseLocker(RedisServer(place)) if place.startswith("redis:") else FileLocker(Path(place))


@contextmanager
def lock_place(kind: Kind, folder: Path) -> Iterator[str]:
    """Where the locks are, as a text that can be handed to another process."""
    if kind == "local":
        yield str(folder)
        return
    with Redis() as server:
        yield server.url
