"""The sign of life of this process, for the other workers: one text in the store, renewed again and again.

There is one heartbeat a process. It says which turns run here, so that a worker that waits for one of them knows when
it is lost.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass

from bridge.errors import StoreUnavailable
from bridge.store.port import Store
from bridge.store.processes import is_gone, own_name

log = logging.getLogger(__name__)

# Seconds between two beats while turns run here, and after how many seconds of silence this process counts as dead.
PULSE = 1.0
ALIVE = 5.0
# The same while no turn runs.
IDLE_PULSE = 20.0
IDLE_ALIVE = 65.0
_LISTED = "workers"
_MOST_LISTED = 128
_KEPT = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Beat:
    """What a process said last. `number` grows with each beat; `turns` are the tokens of the turns that run there."""

    id: str
    host: str
    pid: int
    started: float
    seen: float
    number: int = 0
    turns: tuple[str, ...] = ()


class Heartbeat:
    """One for each process that serves. `turns` says what runs here, `work` is done with every beat."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns: Callable[[], Sequence[str]] = tuple
        self._work: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        self._first: tuple[int, Beat] | None = None
        self._beats = 0
        self._silent = False
        self._changed = threading.Event()

    def carry(self, turns: Callable[[], Sequence[str]], work: Callable[[], None]) -> None:
        """What the beats say and do; set before the first one."""
        self._turns, self._work = turns, work

    @property
    def id(self) -> str:
        """Names this process. The other workers can find it in the store before anybody can name it.

        After a fork it is another process, with a heartbeat of its own.
        """
        with self._guard:
            if self._first is None or self._first[0] != os.getpid():
                now = time.time()
                first = Beat(f"{secrets.token_hex(8)}:{own_name()}", socket.gethostname(), os.getpid(), now, now)
                self._store.put(_key(first.id), _text(first), ALIVE)
                with suppress(StoreUnavailable):  # a later beat does it
                    self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)
                threading.Thread(target=_beat_on, args=(weakref.ref(self),), name="heartbeat", daemon=True).start()
                self._first = os.getpid(), first  # after the start, which fails when no thread is left
                self._changed.set()
            return self._first[1].id

    def hurry(self) -> None:
        """Beat now: a turn began."""
        self._changed.set()

    def beat(self) -> None:
        """One sign of life, and the work that goes with it."""
        assert self._first is not None
        first, turns = self._first[1], tuple(self._turns())
        self._beats += 1
        said = Beat(first.id, first.host, first.pid, first.started, time.time(), self._beats, turns)
        try:
            self._store.put(_key(first.id), _text(said), ALIVE if turns else IDLE_ALIVE)
            self._work()
            if not turns and first.id not in self._store.items(_LISTED):  # the store has lost it
                self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)
        except StoreUnavailable as fault:
            log.log(logging.DEBUG if self._silent else logging.WARNING, "no sign of life: %s", fault.message)
            self._silent = True
        else:
            self._silent = False

    def pause(self) -> None:
        """Wait until the next beat is due."""
        busy = bool(self._turns()) or self._silent
        if self._changed.wait(PULSE if busy else IDLE_PULSE):
            self._changed.clear()


def _beat_on(heartbeat: weakref.ref[Heartbeat]) -> None:
    """Beats as long as the heartbeat exists."""
    while True:
        here = heartbeat()
        if here is None:
            return
        here.pause()
        here.beat()
        del here


def last_beat(store: Store, process_id: str) -> Beat | None:
    """What that process said last; None when it is dead."""
    said = store.get(_key(process_id))
    if said is None or is_gone(process_id.partition(":")[2]):
        return None
    row = json.loads(said)
    return Beat(**{**row, "turns": tuple(row["turns"])})


def living(store: Store) -> list[Beat]:
    """The processes that live, the newest first."""
    beats = [last_beat(store, name) for name in dict.fromkeys(store.items(_LISTED))]
    return [beat for beat in reversed(beats) if beat is not None]


def _key(process_id: str) -> str:
    return f"worker:{process_id}"


def _text(beat: Beat) -> str:
    return json.dumps(asdict(beat), separators=(",", ":"))
