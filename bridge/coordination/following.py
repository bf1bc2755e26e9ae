"""A turn as one sees it who does not run it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator

from bridge.coordination.recording import ALIVE, PULSE, Recording, events_key, runs
from bridge.coordination.records import End, as_failure, from_text
from bridge.coordination.store import Store
from bridge.turn import Event, Reasoning, Text, ToolCall

LOOK = 0.1
NOTHING_SHOWN = 0


class Follower:
    """Reads one attempt. `shown` counts what a client was given of it."""

    def __init__(self, store: Store, token: str, worker: str) -> None:
        self._store = store
        self._token = token
        self._worker = worker
        self._batches = 0
        self.shown = NOTHING_SHOWN

    @staticmethod
    def is_there(store: Store, token: str) -> bool:
        """Whether some other worker has a client that follows this attempt."""
        return store.get(f"followed:{token}") is not None

    def ended(self) -> End | None:
        """How the attempt ended, if it has."""
        batches = self._store.items(events_key(self._token))
        return from_text(batches[-1]).end if batches else None

    def recorded(self) -> Iterator[Event]:
        """All that has been kept of it."""
        for text in self._store.items(events_key(self._token)):
            yield from from_text(text).events

    def here(self, recording: Recording, gone: threading.Event) -> Generator[Event, None, End | None]:
        """An attempt of this worker, until it ends or this client has gone."""
        try:
            for event in recording.feed.read(LOOK):
                if gone.is_set():
                    return None
                if event is not None:
                    yield self._counted(event)
        except GeneratorExit:
            raise
        except BaseException as fault:
            return End("failed", as_failure(fault), recording.gone.is_set())
        return End("well")

    def elsewhere(self, gone: threading.Event) -> Generator[Event, None, End | None]:
        """An attempt of another worker, as it writes it down; None when that worker is lost or the client has gone."""
        heard, asked = time.monotonic(), 0.0
        while not gone.is_set():
            for text in self._store.items(events_key(self._token))[self._batches :]:
                self._batches += 1
                batch = from_text(text)
                for event in batch.events:
                    yield self._counted(event)
                if batch.end is not None:
                    return batch.end
            now = time.monotonic()
            if now - asked >= PULSE:
                asked = now
                self._store.put(f"followed:{self._token}", "1", 3 * PULSE)
                alive = runs(self._store, self._worker, self._token)
                heard = now if alive else heard
                if alive is None or now - heard > ALIVE:
                    return None
            time.sleep(LOOK)
        return None

    def _counted(self, event: Event) -> Event:
        self.shown += isinstance(event, Text | Reasoning | ToolCall)
        return event
