"""The events of a turn that this worker runs, written to the store piece by piece, so that other workers can follow."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from bridge.errors import StoreUnavailable
from bridge.journal.batches import End, to_text
from bridge.store.port import Store
from bridge.turn import AgentEvent, Reasoning, Text, ToolCall

log = logging.getLogger(__name__)

MOST_CHARACTERS = 4_000_000
MOST_BATCHES = 20_000


class Recording:
    """Writes the events of one attempt. `claim` is the key and the text that are renewed as long as it lasts."""

    def __init__(self, store: Store, token: str, claim: tuple[str, str], keep: float) -> None:
        self._store = store
        self._key = events_key(token)
        self._claim = claim
        self._keep = keep
        self._renewed = time.monotonic()
        self._written = 0
        self._characters = 0
        self._writing = threading.Lock()

    def count(self, event: AgentEvent) -> None:
        """Notes how much there is to keep."""
        self._characters += len(event.text) if isinstance(event, Text | Reasoning) else 0
        self._characters += len(event.arguments) if isinstance(event, ToolCall) else 0

    def flush(self, events: Sequence[AgentEvent]) -> None:
        """Writes what has happened since the last time; `events` are all of the turn."""
        with self._writing:
            late = time.monotonic() - self._renewed > self._keep / 3
            fresh = events[self._written :]
            if (fresh or late) and self._fits:
                self._store.append(self._key, to_text(fresh, first=self._written), MOST_BATCHES, self._keep)
                self._written += len(fresh)
            if late:
                key, text = self._claim
                self._store.swap(key, text, text, self._keep)
                self._renewed = time.monotonic()

    def end(self, events: Sequence[AgentEvent], end: End) -> None:
        """Writes the rest, and how the turn ended."""
        with self._writing:
            if end.how == "well" and not self._fits:
                end = End("incomplete", None, end.abandoned)
            fresh = events[self._written :] if self._fits else []
            try:
                self._store.append(self._key, to_text(fresh, end, self._written), MOST_BATCHES, self._keep)
            except StoreUnavailable as trouble:
                log.warning("how a turn ended could not be kept: %s", trouble.message)

    @property
    def _fits(self) -> bool:
        return self._characters <= MOST_CHARACTERS


def events_key(token: str) -> str:
    return f"events:{token}"
