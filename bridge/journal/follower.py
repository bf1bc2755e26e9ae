"""Reads the events of an attempt at a turn from the store: one that another worker makes, or one that has ended."""

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

# Seconds between two reads of the store.
LOOK = 0.1
# Seconds after which a follower that has not renewed its key in the store does not count as a follower any more.
FOLLOWED = 3 * PULSE


class Follower:
    """Reads the events of one attempt from the store. `recorded` has those that `follow` has not given on yet."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self._store = store
        self._token = claim.token
        self._watch = _WorkerWatch(store, claim)
        self._assembly = Assembly()
        self.recorded: list[AgentEvent] = []

    def read_end(self) -> End | None:
        """Adds new events to `recorded`. Returns how the attempt ended, None while it goes on."""
        self.recorded += self._assembly.add(self._store.items(events_key(self._token)))
        return self._assembly.end

    @property
    def is_empty(self) -> bool:
        """Whether the recorded events have neither text nor a tool call for the client."""
        return not any(isinstance(event, Text | ToolCall) for event in self.recorded)

    def follow(self, write: Callable[[AgentEvent], None], gone: Event) -> End:
        """Gives each event to `write`, until the attempt ends. Returns End("lost") if its worker dies or `gone` is set.
        Begins only when the attempt has ended or a heartbeat has shown that its worker lives. Otherwise the worker may
        be dead, and the attempt that replaces its attempt may have other events.
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


class _WorkerWatch:
    """Watches the worker that makes an attempt, and tells that worker that a client here follows the attempt."""

    def __init__(self, store: Store, claim: Claim) -> None:
        self._store = store
        self._claim = claim
        self._last: int | None = None
        self._checked_at = 0.0
        self._heard_at = time.monotonic()
        self.is_certain = False

    def check(self) -> bool:
        """Returns False if the worker is dead, or did not name the attempt in a heartbeat for ALIVE seconds."""
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
