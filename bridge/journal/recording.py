"""Writes the events of an attempt to the store, piece by piece, so that other workers can follow it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from bridge.errors import StoreUnavailable
from bridge.journal.batches import End, batch_to_text
from bridge.store.port import Store
from bridge.turn import AgentEvent, Reasoning, Text, ToolCall

log = logging.getLogger(__name__)

MOST_CHARACTERS = 4_000_000
MOST_BATCHES = 20_000


class Recording:
    """The events of one attempt in the store, kept for `keep` seconds after the last write.

    `renew` is called so often that the claim of the turn does not expire while the attempt goes on.
    """

    def __init__(self, store: Store, token: str, keep: float, renew: Callable[[], object]) -> None:
        self._store = store
        self._key = events_key(token)
        self._keep = keep
        self._renew = renew
        self._renewed = time.monotonic()
        self._written = 0
        self._characters = 0
        self._writing = threading.Lock()

    def add_size_of(self, event: AgentEvent) -> None:
        """Adds the size of the event to what there is to keep."""
        self._characters += len(event.text) if isinstance(event, Text | Reasoning) else 0
        self._characters += len(event.arguments) if isinstance(event, ToolCall) else 0

    def flush(self, events: Sequence[AgentEvent]) -> None:
        """Writes the events that are not written yet; `events` are all of the attempt."""
        with self._writing:
            late = time.monotonic() - self._renewed > self._keep / 3
            fresh = events[self._written :]
            if (fresh or late) and self._fits:
                self._store.append(self._key, batch_to_text(fresh, first=self._written), MOST_BATCHES, self._keep)
                self._written += len(fresh)
            if late:
                self._renew()
                self._renewed = time.monotonic()

    def end(self, events: Sequence[AgentEvent], end: End) -> None:
        """Writes the other events, and how the attempt ended."""
        with self._writing:
            if end.how == "well" and not self._fits:
                end = End("incomplete", None, end.gone)
            fresh, first = (events[self._written :] if self._fits else []), self._written
            self._written = len(events)
            try:
                self._store.append(self._key, batch_to_text(fresh, end, first), MOST_BATCHES, self._keep)
            except StoreUnavailable as fault:
                log.warning("the end of a turn could not be written to the store: %s", fault.message)

    @property
    def _fits(self) -> bool:
        return self._characters <= MOST_CHARACTERS


def events_key(token: str) -> str:
    return f"events:{token}"


def followed_key(token: str) -> str:
    """The key that exists while a client of another worker follows the attempt."""
    return f"followed:{token}"


def is_followed(store: Store, token: str) -> bool:
    return store.get(followed_key(token)) is not None
