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
from bridge.store.processes import name_of_this_process, process_has_ended

log = logging.getLogger(__name__)

# Seconds between two beats while turns run here, and seconds of silence after which this process counts as dead.
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
    """What a process said last. `number` grows with each beat; `turns` are the tokens of the attempts that it makes."""

    id: str
    host: str
    pid: int
    started: float
    seen: float
    number: int = 0
    turns: tuple[str, ...] = ()


class Heartbeat:
    """Beats in a thread of its own, from the moment when `id` is first asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns: Callable[[], Sequence[str]] = tuple
        self._work: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        self._first: tuple[int, Beat] | None = None
        self._beats = 0
        self._is_often = False
        self._is_silent = False
        self._hurry = threading.Event()

    def set_turns_and_work(self, turns: Callable[[], Sequence[str]], work: Callable[[], None]) -> None:
        """Sets what the beats say (`turns`) and what is done with each (`work`). Called before the first beat."""
        self._turns, self._work = turns, work

    @property
    def id(self) -> str:
        """The name of this process. It is in the store before anybody can name it.

        After a fork, the child is another process with a heartbeat of its own.
        """
        with self._guard:
            if self._first is None or self._first[0] != os.getpid():
                now = time.time()
                first = Beat(
                    f"{secrets.token_hex(8)}:{name_of_this_process()}", socket.gethostname(), os.getpid(), now, now
                )
                self._store.put(_beat_key(first.id), _beat_as_text(first), ALIVE)
                with suppress(StoreUnavailable):  # a later beat does it
                    self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)
                threading.Thread(
                    target=_beat_until_heartbeat_is_gone, args=(weakref.ref(self),), name="heartbeat", daemon=True
                ).start()
                self._first = os.getpid(), first  # after the start, which fails when no thread is left
                self._hurry.set()
            return self._first[1].id

    def beat_soon(self) -> None:
        """Says that a turn began. An idle process beats at once, a busy one beats often already."""
        self._hurry.set()

    def beat(self) -> None:
        """Gives one sign of life, and does the work that goes with it."""
        assert self._first is not None
        first, turns = self._first[1], tuple(self._turns())
        self._beats += 1
        self._is_often = bool(turns)
        said = Beat(first.id, first.host, first.pid, first.started, time.time(), self._beats, turns)
        try:
            self._store.put(_beat_key(first.id), _beat_as_text(said), ALIVE if turns else IDLE_ALIVE)
            self._work()
            if not turns and first.id not in self._store.items(_LISTED):  # the store has lost it
                self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)
        except Exception as fault:  # whatever it is: without beats, the other workers take this process for dead
            level = logging.DEBUG if self._is_silent else logging.WARNING
            log.log(level, "no sign of life: %s", fault, exc_info=not isinstance(fault, StoreUnavailable))
            self._is_silent = True
        else:
            self._is_silent = False

    def pause(self) -> None:
        """Waits until the next beat is due. That depends on the last beat: it says for how long the process lives."""
        if self._is_often or self._is_silent:
            time.sleep(PULSE)
        else:
            self._hurry.wait(IDLE_PULSE)
        self._hurry.clear()


def _beat_until_heartbeat_is_gone(heartbeat: weakref.ref[Heartbeat]) -> None:
    """Beats as long as the heartbeat exists."""
    while True:
        here = heartbeat()
        if here is None:
            return
        here.pause()
        here.beat()
        del here


def last_beat(store: Store, worker_id: str) -> Beat | None:
    """Returns what that process said last, None if it is dead."""
    said = store.get(_beat_key(worker_id))
    if said is None or process_has_ended(worker_id.partition(":")[2]):
        return None
    row = json.loads(said)
    return Beat(**{**row, "turns": tuple(row["turns"])})


def beats_of_living_workers(store: Store) -> list[Beat]:
    """Returns the last beats of the processes that live, the newest process first."""
    beats = [last_beat(store, name) for name in dict.fromkeys(store.items(_LISTED))]
    return [beat for beat in reversed(beats) if beat is not None]


def _beat_key(worker_id: str) -> str:
    return f"process:{worker_id}"


def _beat_as_text(beat: Beat) -> str:
    return json.dumps(asdict(beat), separators=(",", ":"))
