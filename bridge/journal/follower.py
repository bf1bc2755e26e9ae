"""Reads an attempt that another worker makes, or that is over, from its recording in the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

from bridge.journal.batches import Assembly, End
from bridge.journal.claims import Claim
from bridge.journal.recording import events_key, followed_key
from bridge.store.heartbeat import ALIVE, PULSE, last_beat
from bridge.store.port import Store
from bridge.turn import AgentEvent, Text, ToolCall

LOOK = 0.1
# A follower that is silent for so many seconds does not follow any more.
FOLLOWED = 3 * PULSE


class Follower:
    """Reads one attempt."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self._store = store
        self._token = claim.token
        self._watch = _Watch(store, claim)
        self._assembly = Assembly()
        self.recorded: list[AgentEvent] = []

    def read_end(self) -> End | None:
        """Reads what was written since the last time. Returns how the attempt ended, if it has."""
        self.recorded += self._assembly.add(self._store.items(events_key(self._token)))
        return self._assembly.end

    @property
    def is_empty(self) -> bool:
        """Whether the recorded events give the client nothing to go on with."""
        return not any(isinstance(event, Text | ToolCall) for event in self.recorded)

    def follow(self, write: Callable[[AgentEvent], None], gone: Event) -> End:
        """Gives each event to `write` until the attempt ends, its worker is lost, or `gone` is set.

        Gives nothing before the attempt has ended or its worker has shown a sign of life. What a dead worker left
        behind may not be the beginning of the answer that is made in its place.
        """
        while not gone.is_set():
            alive = self._watch.check()
            end = self.read_end()
            if end is not None or self._watch.is_certain:
                for event in self.recorded:
                    write(event)
                self.recorded.clear()
            if end is not None:
                return end
            if not alive:
                break
            time.sleep(LOOK)
        return End("lost")


class _Watch:
    """Finds out whether the worker that makes an attempt lives. Also tells that worker that a client follows."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self._store = store
        self._claim = claim
        self._last: int | None = None
        self._checked_at = 0.0
        self._heard_at = time.monotonic()
        self.is_certain = False

    def check(self) -> bool:
        """Returns whether the worker may live. `is_certain` is set once it was seen to make the attempt."""
        now = time.monotonic()
        if now - self._checked_at < PULSE / 2:
            return True
        self._checked_at = now
        self._store.put(followed_key(self._claim.token), "1", FOLLOWED)
        beat = last_beat(self._store, self._claim.worker)
        if beat is None:
            return False
        beats_again = self._last is not None and beat.number > self._last
        self._last = beat.number
        if beats_again and self._claim.token in beat.turns:
            self._heard_at = now
            self.is_certain = True
        return now - self._heard_at <= ALIVE
