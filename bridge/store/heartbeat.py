"""The heartbeat of a worker: a text in the store, written again and again, that shows that the worker lives.

The text names the attempts that the worker makes, so that a worker that waits for one knows when it is lost.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from bridge.errors import StoreUnavailable
from bridge.lasting_thread import LastingThread
from bridge.store.port import Store
from bridge.store.processes import name_of_this_process, process_has_ended

# Seconds between two beats while turns run here, and seconds without a beat after which this worker counts as dead.
PULSE = 1.0
ALIVE = 5.0
# The same two numbers while no turn runs here.
IDLE_PULSE = 20.0
IDLE_ALIVE = 65.0
# In so many pulses after the store lost its data, each worker that lives has written again what its turns need, also on
# a busy machine.
PULSES_TO_RESTORE = 5
# The key of the list of all workers' ids, the most ids in that list, and the seconds that it is kept.
_LISTED = "workers"
_MOST_LISTED = 128
_KEPT = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Beat:
    """One beat of a worker. `started` and `seen` are Unix times; `turns` are the tokens of the worker's attempts."""

    id: str
    host: str
    pid: int
    started: float
    seen: float
    number: int = 0
    turns: tuple[str, ...] = ()


class Heartbeat:
    """Writes the beats of this worker to the store, from the moment when `id` is first read. Uses its own thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns: Callable[[], Sequence[str]] = tuple
        self._work: Callable[[], None] = lambda: None
        self._guard = threading.Lock()
        self._first: tuple[int, Beat] | None = None
        self._beats = 0
        self._last_named_turns = False
        self._last: Beat | None = None
        self._last_text = ""
        self._lost_at = -math.inf
        self._hurry = threading.Event()
        self.thread = LastingThread("heartbeat", self._wait_for_beat, self.beat, "no sign of life")

    def set_turns_and_work(self, turns: Callable[[], Sequence[str]], work: Callable[[], None]) -> None:
        """Sets what each beat calls, before the first beat. `turns` returns the tokens of this worker's attempts."""
        self._turns, self._work = turns, work

    @property
    def id(self) -> str:
        """The id of this worker. The first read starts the heartbeat, and writes a beat before it returns the id.
        After a fork, the child process is another worker with another id and its own heartbeat.
        """
        with self._guard:
            if self._first is None or self._first[0] != os.getpid():
                now = time.time()
                first = Beat(
                    f"{secrets.token_hex(8)}:{name_of_this_process()}", socket.gethostname(), os.getpid(), now, now
                )
                self._last, self._last_text = first, _beat_as_text(first)
                self._store.put(_beat_key(first.id), self._last_text, ALIVE)
                with suppress(StoreUnavailable):  # a later beat adds the id
                    self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)
                self._first = os.getpid(), first  # before the start, because the thread may beat at once
                self._hurry.set()
                try:
                    self.thread.start()
                except BaseException:  # no thread is left
                    self._first = None
                    raise
            return self._first[1].id

    def beat_soon(self) -> None:
        """Says that a turn began. If the last beat had no attempts, the next beat then comes at once."""
        self._hurry.set()

    def sign_of_kept_data(self) -> dict[str, str | None] | None:
        """Returns the key and the text of the last beat: while the store has them, it has not lost its data. None if it
        has just lost its data. A beat after a loss has another text than the beats before.
        """
        key = _beat_key(self.id)
        text = self._last_text  # before the look at the time: a beat after a loss sets the time first, then the text
        return None if self._has_just_lost_data() else {key: text}

    def _has_just_lost_data(self) -> bool:
        return time.monotonic() < self._lost_at + PULSES_TO_RESTORE * PULSE

    def wait_for_lost_data(self, is_back: Callable[[], bool]) -> None:
        """If the store has just lost its data, waits until the other workers have written theirs again, or `is_back`
        says that the wanted data is there.
        """
        if self._store.get(_beat_key(self.id)) is None:
            self._lost_at = time.monotonic()
            self._hurry.set()
        while self._has_just_lost_data() and not is_back():
            time.sleep(PULSE / 10)

    def restore(self) -> None:
        """Writes the last beat again if the store lost it: without one, other workers take this worker for dead."""
        assert self.id
        assert self._last is not None
        self._put_beat(replace(self._last, seen=time.time()), ALIVE)

    def _put_beat(self, beat: Beat, keep: float) -> None:
        """Writes a beat. Notes the time if the store does not have the last one any more: it was emptied."""
        key, text = _beat_key(beat.id), _beat_as_text(beat)
        if not self._store.replace_if_unchanged(key, self._last_text, text, keep):
            self._lost_at = time.monotonic()
            self._store.put(key, text, keep)
        self._last, self._last_text = beat, text

    def beat(self) -> None:
        """Writes one beat, calls `work`, and lists this worker if the store has lost it."""
        assert self._first is not None
        first, turns = self._first[1], tuple(self._turns())
        self._beats += 1
        self._last_named_turns = bool(turns)
        beat = Beat(first.id, first.host, first.pid, first.started, time.time(), self._beats, turns)
        self._put_beat(beat, ALIVE if turns else IDLE_ALIVE)
        self._work()
        if not turns and first.id not in self._store.items(_LISTED):  # the store lost the id
            self._store.append(_LISTED, first.id, _MOST_LISTED, _KEPT)

    def _wait_for_beat(self) -> bool:
        """Waits until the next beat is due: PULSE after a beat with attempts, otherwise IDLE_PULSE.
        The last beat decides, because the store keeps the text of that beat only ALIVE or IDLE_ALIVE seconds.
        """
        if self._last_named_turns:
            time.sleep(PULSE)
        else:
            self._hurry.wait(IDLE_PULSE)
        self._hurry.clear()
        return True


def last_beat(store: Store, worker_id: str) -> Beat | None:
    """Returns the worker's last beat. None if that has expired, or the worker's process on this machine has ended."""
    said = store.get(_beat_key(worker_id))
    if said is None or process_has_ended(worker_id.partition(":")[2]):
        return None
    row = json.loads(said)
    return Beat(**{**row, "turns": tuple(row["turns"])})


def beats_of_living_workers(store: Store) -> list[Beat]:
    """Returns the last beat of each worker that lives, the newest worker first."""
    beats = [last_beat(store, name) for name in dict.fromkeys(store.items(_LISTED))]
    return [beat for beat in reversed(beats) if beat is not None]


def _beat_key(worker_id: str) -> str:
    return f"process:{worker_id}"


def _beat_as_text(beat: Beat) -> str:
    return json.dumps(asdict(beat), separators=(",", ":"))
