"""Watches the events of turns and writes down what happened, beside the turns: none waits for it or fails by it."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import socket
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import Protocol

from bridge.errors import BridgeError
from bridge.history.activity import HEARTBEAT, Activity
from bridge.history.record_builder import RecordBuilder
from bridge.history.records import Worker
from bridge.turn import AgentEvent, ToolsOffered, Turn, TurnEvent

# How often turns that are under way are written.
PERIOD = 1.0
# Turns that end within this time of each other are written together.
GATHERING = 0.05
MOST_WAITING = 1_000
STOP_SECONDS = 5.0
MOST_CARDS_REMEMBERED = 20_000
# The card of a tool that is offered again and again is written anew before the store forgets it.
CARD_RENEWAL = 86_400.0

log = logging.getLogger(__name__)


class Costs(Protocol):
    """What a turn has cost so far."""

    @property
    def letta_calls(self) -> int: ...
    @property
    def letta_seconds(self) -> float: ...
    @property
    def waited_seconds(self) -> float: ...


class Recorder:
    """One a process. `costs` tells of the turn whose thread asks. Its own thread begins with the first turn."""

    def __init__(
        self,
        activity: Activity,
        costs: Callable[[], Costs | None] = lambda: None,
        *,
        keeps_text: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._activity = activity
        self._costs = costs
        self._keeps_text = keeps_text
        self._clock = clock
        self._running: dict[str, RecordBuilder] = {}
        self._over: deque[RecordBuilder] = deque(maxlen=MOST_WAITING)
        self._known: OrderedDict[str, float] = OrderedDict()
        self._news = threading.Condition()
        self._writing = False
        self._stopped = False
        self._thread: threading.Thread | None = None

    def watch(self, turn: Turn, events: Iterable[TurnEvent]) -> Iterator[AgentEvent]:
        """The same events, but for those that are only for the record."""
        sketch = RecordBuilder(secrets.token_hex(8), turn, self._clock(), keeps_text=self._keeps_text)
        self._begin(sketch)
        try:
            for event in events:
                sketch.see(event)
                if not isinstance(event, ToolsOffered):
                    yield event
        except BridgeError as failure:
            sketch.fail(failure.code or failure.type, failure.message)
            raise
        except BaseException as fault:
            sketch.fail("broken_off" if isinstance(fault, GeneratorExit) else "internal_error", "")
            raise
        finally:
            costs = self._costs()
            if costs is not None:
                sketch.cost(costs.letta_calls, costs.letta_seconds, costs.waited_seconds)
            self._end(sketch)

    def flush(self, seconds: float = 10.0) -> None:
        """Wait until all that ended is written."""
        with self._news:
            self._news.notify_all()
            self._news.wait_for(lambda: not self._over and not self._writing, seconds)

    def start(self) -> None:
        """Begin to tell that this worker lives, until the process ends; later where there is no thread left."""
        if self._thread is not None:
            return
        with self._news:
            if self._thread is None:
                thread = threading.Thread(target=self._write_on, name="recorder", daemon=True)
                try:
                    thread.start()
                except RuntimeError as fault:
                    log.warning("what turns do can't be written down yet: %s", fault)
                    return
                self._thread = thread
                atexit.register(self.stop)

    def stop(self) -> None:
        """Write what has ended, and then no more."""
        atexit.unregister(self.stop)
        with self._news:
            self._stopped = True
            self._news.notify_all()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)

    def _begin(self, sketch: RecordBuilder) -> None:
        self.start()
        with self._news:
            self._running[sketch.id] = sketch
            self._news.notify_all()

    def _end(self, sketch: RecordBuilder) -> None:
        sketch.end()
        with self._news:
            del self._running[sketch.id]
            self._over.append(sketch)
            self._news.notify_all()

    def _write_on(self) -> None:
        worker = Worker(secrets.token_hex(4), socket.gethostname(), os.getpid(), self._clock(), self._clock())
        alive, patience = 0.0, 0.0
        while not self._stopped or self._over:
            over, running = self._gathered(patience)
            patience = HEARTBEAT
            due = bool(running) or self._clock() - alive >= HEARTBEAT
            told = replace(worker, seen=self._clock(), running=tuple(sketch.record() for sketch in running))
            if self._written(over, told if due else None) and due:
                alive = 0.0 if running else self._clock()
            with self._news:
                self._writing = False
                self._news.notify_all()

    def _gathered(self, patience: float) -> tuple[list[RecordBuilder], list[RecordBuilder]]:
        """What ended and what runs: at once when something ended, later when nothing did."""
        with self._news:
            self._news.wait_for(lambda: self._over or self._running or self._stopped, patience)
            if not self._over and self._running:
                self._news.wait_for(lambda: self._over or self._stopped, PERIOD)
            if self._over:
                self._news.wait_for(lambda: self._stopped, GATHERING)
            over, running = list(self._over), list(self._running.values())
            self._over.clear()
            self._writing = True
            return over, running

    def _written(self, over: list[RecordBuilder], worker: Worker | None) -> bool:
        try:
            if worker is not None:
                self._activity.lives(worker)
            if over:
                self._write_over(over)
        except BridgeError as fault:
            log.warning("what turns did could not be written down: %s", fault.message)
            return False
        return True

    def _write_over(self, over: list[RecordBuilder]) -> None:
        digests = {sketch.id: sketch.digests for sketch in over}
        now = self._clock()
        met = {digest for named in digests.values() for digest in named.values()}
        due = {digest for digest in met if now - self._known.get(digest, -inf) >= CARD_RENEWAL}
        self._meet(over, due)
        fresh = self._activity.ended([sketch.record() for sketch in over], digests)
        self._meet(over, fresh - due)  # their cards went when the store forgot them
        self._known.update(dict.fromkeys(due, now))
        while len(self._known) > MOST_CARDS_REMEMBERED:
            self._known.popitem(last=False)

    def _meet(self, over: list[RecordBuilder], digests: Collection[str]) -> None:
        self._activity.meets({card.digest: card for sketch in over for card in sketch.cards(digests)}.values())
