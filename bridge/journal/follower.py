"""A turn as one sees it who does not run it."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator

from bridge.journal.batches import Assembly, End, as_failure
from bridge.journal.recording import ALIVE, PULSE, Recording, events_key, sign_of_life
from bridge.store.port import Store
from bridge.turn import AgentEvent, Reasoning, Text, ToolCall

LOOK = 0.1
# A follower that is silent for as long follows no more.
FOLLOWED = 3 * PULSE
NOTHING_SHOWN = 0


class Follower:
    """Reads one attempt. `shown` counts what a client was given of it."""

    def __init__(self, store: Store, token: str, worker: str) -> None:
        self._store = store
        self._token = token
        self._worker = worker
        self._assembly = Assembly()
        self._kept: list[AgentEvent] = []
        self.shown = NOTHING_SHOWN

    @staticmethod
    def is_there(store: Store, token: str) -> bool:
        """Whether some other worker has a client that follows this attempt."""
        return store.get(f"followed:{token}") is not None

    def ended(self) -> End | None:
        """How the attempt ended, if it has."""
        self._kept += self._assembly.add(self._store.items(events_key(self._token)))
        return self._assembly.end

    @property
    def is_empty(self) -> bool:
        """Whether in what has been kept there is nothing for the client to go on with."""
        return not any(isinstance(event, Text | ToolCall) for event in self._kept)

    def recorded(self) -> Iterator[AgentEvent]:
        """All that has been kept of it."""
        yield from self._kept

    def here(self, recording: Recording, gone: threading.Event) -> Generator[AgentEvent, None, End | None]:
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

    def elsewhere(self, gone: threading.Event) -> Generator[AgentEvent, None, End | None]:
        """An attempt of another worker, as it writes it down; None when that worker is lost or the client has gone.

        Nothing is shown before it ended or that worker has given a sign of life: what a dead one left behind may not
        be the beginning of the answer that is made in its place.
        """
        watch = _Watch(self._store, self._worker, self._token)
        while not gone.is_set():
            alive = watch.look()
            end = self.ended()
            if end is not None or watch.certain:
                for event in self._kept:
                    yield self._counted(event)
                self._kept.clear()
            if end is not None or not alive:
                return end
            time.sleep(LOOK)
        return None

    def _counted(self, event: AgentEvent) -> AgentEvent:
        self.shown += isinstance(event, Text | Reasoning | ToolCall)
        return event


class _Watch:
    """Whether the worker that makes an attempt lives; it is told in turn that somebody follows."""

    def __init__(self, store: Store, worker: str, token: str) -> None:
        self._store = store
        self._worker = worker
        self._token = token
        self._last: int | None = None
        self._looked = 0.0
        self._heard = time.monotonic()
        self.certain = False

    def look(self) -> bool:
        now = time.monotonic()
        if now - self._looked < PULSE / 2:
            return True
        self._looked = now
        self._store.put(f"followed:{self._token}", "1", FOLLOWED)
        sign = sign_of_life(self._store, self._worker)
        if sign is None:
            return False
        beats, tokens = sign
        beats_again = self._last is not None and beats > self._last
        self._last = beats
        if beats_again and self._token in tokens:
            self._heard = now
            self.certain = True
        return now - self._heard <= ALIVE
