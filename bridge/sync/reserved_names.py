"""Reserves names of tools on the Letta server among all workers, so that no two stubs are put under one name at a time.

Nobody waits for a name: a stub whose name is reserved for another one gets another name, as it would a moment later.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bridge.errors import StoreUnavailable
from bridge.letta.identity import ServerIdentity
from bridge.store.port import Store

log = logging.getLogger(__name__)

# Seconds after which a reservation ends whose worker died. No worker needs longer to put the tools of a request.
KEEP = 600.0


class ReservedNames:
    """The names on one Letta server that are reserved now."""

    def __init__(self, store: Store, server: ServerIdentity) -> None:
        self._store = store
        self._server = server

    @contextmanager
    def reservation(self) -> Iterator[Reservation]:
        """Yields a reservation of names, which ends with the block."""
        made = Reservation(self._store, f"tool-name:{self._server.read()}:")
        try:
            yield made
        finally:
            made.end()


class Reservation:
    """The names that are reserved for the stubs of one request. The keys of the names in the store have a `prefix`."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._token = secrets.token_hex(8)
        self._keys: list[str] = []

    def add(self, digests: Mapping[str, str]) -> set[str]:
        """Reserves each name for the stub with this digest. Returns the names that are reserved for other stubs. The
        same stub may be put by several requests at once.
        """
        return {name for name, digest in digests.items() if not self._reserve(name, digest)}

    def _reserve(self, name: str, digest: str) -> bool:
        there = self._store.put_if_free(f"{self._prefix}{name}", f"{digest}:{self._token}", KEEP)
        if there is None:
            self._keys.append(f"{self._prefix}{name}")
        return there is None or there.startswith(f"{digest}:")

    def end(self) -> None:
        """Frees the names. Only logs a fault of the store, because the tools are on the server."""
        try:
            self._store.remove(*self._keys)
        except StoreUnavailable as fault:
            log.warning("names of tools stay reserved for a while: %s", fault.message)
