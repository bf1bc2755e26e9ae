"""The kinds of store, for tests that hold for each: the file of one machine and a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from bridge.coordination.local import LocalStore
from bridge.coordination.redis import RedisServer, RedisStore
from bridge.coordination.store import Store
from testbed.redis import Redis

Kind = Literal["local", "redis"]
KINDS: tuple[Kind, ...] = ("local", "redis")


@contextmanager
def opened(kind: Kind, folder: Path) -> Iterator[Callable[[], Store]]:
    """What opens one and the same store, as each worker does."""
    if kind == "local":
        yield lambda: LocalStore(folder / "shared.db")
        return
    with Redis() as server:
        yield lambda: RedisStore(RedisServer(server.url))
