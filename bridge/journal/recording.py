"""Writes the events of an attempt at a turn to the store while they come, so that other workers can read them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from bridge.errors import StoreUnavailable
from bridge.journal.batches import End, batch_to_text
from bridge.store.port import Append, Store
from bridge.turn import AgentEvent, Reasoning, Text, ToolCall

log = logging.getLogger(__name__)

# The limits of one attempt's recording. Beyond MOST_BATCHES, the oldest batches are removed.
MOST_CHARACTERS = 4_000_000
MOST_BATCHES = 20_000


class Recording:
    """Writes the events of one attempt to the store, which keeps them for `keep` seconds after the last write. The turn
    has its claim at `claim_key`. `renew` makes the store keep the claim longer; `restore` writes the claim again if it
    is lost, and returns whether it was.
    """

    def __init__(
        self,
        store: Store,
        token: str,
        keep: float,
        renew: Callable[[], object],
        restore: Callable[[], bool],
        claim_key: str,
    ) -> None:
        self._store = store
        self._key = events_key(token)
        self._claim_key = claim_key
        self._keep = keep
        self._renew = renew
        self._restore = restore
        self._ended = False
        self._renewed = time.monotonic()
        self._written = 0
        self._characters = 0
        self._writing = threading.Lock()

    def add_size_of(self, event: AgentEvent) -> None:
        """Adds the event's characters to the recording's size. Above MOST_CHARACTERS, no more events are written."""
        self._characters += len(event.text) if isinstance(event, Text | Reasoning) else 0
        self._characters += len(event.arguments) if isinstance(event, ToolCall) else 0

    def flush(self, events: Sequence[AgentEvent]) -> None:
        """Writes the unwritten ones of all `events`; all of them if the store lost its data, and the claim, too: so a
        repeat finds the attempt. After `keep` / 3 seconds, renews the claim and the recording.
        """
        with self._writing:
            if self._ended:  # a client may have the answer, and the claim is removed then
                return
            late = time.monotonic() - self._renewed > self._keep / 3
            if self._is_small_enough and (late or len(events) > self._written):
                self._write(events)
            elif self._restore() and self._is_small_enough:
                self._written = 0
                self._write(events)
            if late:
                self._renew()
                self._renewed = time.monotonic()

    def end(self, events: Sequence[AgentEvent], end: End) -> None:
        """Writes the other `events` and the end, "incomplete" if they are too large. Only logs a fault of the store."""
        with self._writing:
            if end.how == "well" and not self._is_small_enough:
                end = End("incomplete", None, end.gone)
            self._ended = True
            try:
                self._write(events, end)
            except StoreUnavailable as fault:
                log.warning("the end of a turn could not be written to the store: %s", fault.message)

    def _write(self, events: Sequence[AgentEvent], end: End | None = None) -> None:
        """Writes the unwritten ones of all `events`, or all if the store lost its data, and the end."""
        known = len(events) if self._is_small_enough else self._written  # more may come while these are written
        if not self._store.change([self._batch(events[:known], end)], needs=self._claim_key):
            if self._restore():
                self._written = 0
            self._store.change([self._batch(events[:known], end)])
        self._written = known

    def _batch(self, events: Sequence[AgentEvent], end: End | None) -> Append:
        text = batch_to_text(events[self._written :], end, self._written)
        return Append(self._key, text, MOST_BATCHES, self._keep)

    @property
    def _is_small_enough(self) -> bool:
        return self._characters <= MOST_CHARACTERS


def events_key(token: str) -> str:
    return f"events:{token}"


def followed_key(token: str) -> str:
    """Returns the store's key that exists while a client of another worker reads the attempt with this token."""
    return f"followed:{token}"


def is_followed(store: Store, token: str) -> bool:
    return store.get(followed_key(token)) is not None
