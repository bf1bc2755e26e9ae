"""The turns that this worker runs: read by its own threads as they go, and written to the store piece by piece."""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
import time
import weakref
from dataclasses import asdict, dataclass

from bridge.errors import BridgeError, StoreUnavailable
from bridge.journal.batches import End, as_failure, to_text
from bridge.journal.processes import is_gone, own_name
from bridge.journal.stream import TurnStream
from bridge.store.port import Store
from bridge.turn import AgentEvent, Reasoning, Text, ToolCall

log = logging.getLogger(__name__)

PULSE = 1.0
# A worker that is silent for as long is taken for dead.
ALIVE = 5.0
MOST_CHARACTERS = 4_000_000
MOST_BATCHES = 20_000


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose a turn is: `token` of the attempt, and `worker` that makes it."""

    turn: str
    body: str
    token: str
    worker: str

    def text(self) -> str:
        return json.dumps(asdict(self))


class Recording:
    """One turn under way. `gone` is set when nobody waits for it; `readers` are the clients of this worker."""

    def __init__(self, claim: Claim, key: str, keep: float) -> None:
        self.token = claim.token
        self._claimed = key, claim.text()
        self._renewed = time.monotonic()
        self.feed = TurnStream()
        self.gone = threading.Event()
        self.readers = 1
        self._keep = keep
        self._written = 0
        self._characters = 0
        self._writing = threading.Lock()

    def write(self, event: AgentEvent) -> None:
        self._characters += len(event.text) if isinstance(event, Text | Reasoning) else 0
        self._characters += len(event.arguments) if isinstance(event, ToolCall) else 0
        self.feed.write(event)

    def flush(self, store: Store) -> None:
        """What has happened since the last time."""
        with self._writing:
            late = time.monotonic() - self._renewed > self._keep / 3
            fresh = self.feed.since(self._written)
            if (fresh or late) and self._characters <= MOST_CHARACTERS:
                text = to_text(fresh, first=self._written)
                store.append(events_key(self.token), text, MOST_BATCHES, self._keep)
                self._written += len(fresh)
            if late:
                key, text = self._claimed
                store.swap(key, text, text, self._keep)
                self._renewed = time.monotonic()

    def end(self, store: Store, fault: BaseException | None) -> None:
        """Known to the store first: whoever reads it here may tell its client, and that one may ask again."""
        failure: BridgeError | None = None if fault is None else as_failure(fault)
        with self._writing:
            complete = self._characters <= MOST_CHARACTERS
            end = End("failed" if fault else "well" if complete else "incomplete", failure, self.gone.is_set())
            fresh = self.feed.since(self._written) if complete else []
            text = to_text(fresh, end, self._written)
            try:
                store.append(events_key(self.token), text, MOST_BATCHES, self._keep)
            except StoreUnavailable as trouble:
                log.warning("how a turn ended could not be kept: %s", trouble.message)
        self.feed.end(fault)


class Worker:
    """This process, as the others see it: alive, and with which turns. A thread of it tells."""

    def __init__(self, store: Store, keep: float) -> None:
        self._store = store
        self._keep = keep
        self._live: dict[str, Recording] = {}
        self._guard = threading.Lock()
        self._born: tuple[int, str] | None = None
        self._silent = False
        self._beats = 0

    @property
    def id(self) -> str:
        """Made known to the others before anybody can hear of it."""
        with self._guard:
            if self._born is None or self._born[0] != os.getpid():
                self._live.clear()
                born = os.getpid(), f"{secrets.token_hex(8)}:{own_name()}"
                self._store.put(worker_key(born[1]), json.dumps([0, []]), ALIVE)
                threading.Thread(target=_beat, args=(weakref.ref(self), born[1]), name="pulse", daemon=True).start()
                self._born = born  # behind the start, which fails where there is no thread left
            return self._born[1]

    def begin(self, claim: Claim, key: str, gone: threading.Event) -> Recording:
        recording = Recording(claim, key, self._keep)
        with self._guard:
            self._live[claim.token] = recording
        if gone.is_set():
            recording.gone.set()
        return recording

    def end(self, recording: Recording, fault: BaseException | None) -> None:
        recording.end(self._store, fault)
        with self._guard:
            self._live.pop(recording.token, None)

    def join(self, token: str) -> Recording | None:
        """The turn if it runs here and somebody waits for it."""
        with self._guard:
            recording = self._live.get(token)
            if recording is not None:
                recording.readers += 1
            return recording

    def leave(self, recording: Recording) -> bool:
        """One reader less; whether it was the last."""
        with self._guard:
            recording.readers -= 1
            return recording.readers <= 0

    def beat(self, worker_id: str) -> None:
        with self._guard:
            live = [*self._live.values()]
        self._beats += 1
        said = json.dumps([self._beats, [recording.token for recording in live]])
        try:
            self._store.put(worker_key(worker_id), said, ALIVE)
            for recording in live:
                recording.flush(self._store)
        except StoreUnavailable as fault:
            log.log(logging.DEBUG if self._silent else logging.WARNING, "no sign of life: %s", fault.message)
            self._silent = True
        else:
            self._silent = False


def _beat(worker: weakref.ref[Worker], worker_id: str) -> None:
    """As long as there is the worker and its process."""
    while True:
        time.sleep(PULSE)
        here = worker()
        if here is None:
            return
        here.beat(worker_id)
        del here


def sign_of_life(store: Store, worker_id: str) -> tuple[int, frozenset[str]] | None:
    """What a worker said last: a number that grows, and the attempts that it makes. None when it is dead."""
    said = store.get(worker_key(worker_id))
    if said is None or is_gone(worker_id.partition(":")[2]):
        return None
    beats, tokens = json.loads(said)
    return beats, frozenset(tokens)


def events_key(token: str) -> str:
    return f"events:{token}"


def worker_key(worker_id: str) -> str:
    return f"worker:{worker_id}"
