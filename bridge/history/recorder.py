"""Writes turn records to the store in a thread of its own: no turn waits for the store, or fails because of it."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from math import inf

from bridge.dialects.base import Dialect
from bridge.errors import BridgeError
from bridge.history.activity import Activity
from bridge.history.record_builder import RecordBuilder
from bridge.history.records import TurnRecord
from bridge.lasting_thread import LastingThread
from bridge.store.heartbeat import Heartbeat
from bridge.trace import current_trace
from bridge.turn import Turn

# Seconds between two writes of the running turns.
PERIOD = 1.0
# Turns that end within so many seconds are written together.
GATHERING = 0.25
MOST_WAITING = 1_000
STOP_SECONDS = 5.0
MOST_CARDS_REMEMBERED = 20_000
# The card of a tool in use is written again after so many seconds, before the store forgets it.
CARD_RENEWAL = 86_400.0

log = logging.getLogger(__name__)


class Recorder:
    """The one recorder of this worker. With the first request, its thread and the worker's heartbeat start.
    With `keeps_text` false, the records have no text of conversations. `clock` returns the Unix time.
    """

    def __init__(
        self,
        activity: Activity,
        heartbeat: Heartbeat,
        *,
        keeps_text: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._activity = activity
        self._heartbeat = heartbeat
        self._keeps_text = keeps_text
        self._clock = clock
        self._running: set[RecordBuilder] = set()
        self._over: deque[RecordBuilder] = deque(maxlen=MOST_WAITING)
        self._known: OrderedDict[str, float] = OrderedDict()
        self._changed = threading.Condition()
        self._writing = False
        self._hurried = False
        self._shown = False  # the store has a list of running turns that is not empty
        self._shown_at = -inf
        self._stopped = False
        self.thread = LastingThread(
            "recorder", self._wait_for_turns, self._write_turns, "turns could not be written down"
        )

    def begin(self, turn: Turn, dialect: Dialect) -> RecordBuilder:
        """Returns the record builder for a turn that begins now, and is in the list of running turns from now on."""
        record = RecordBuilder(turn, current_trace(), self._clock(), dialect, keeps_text=self._keeps_text)
        self.start()
        with self._changed:
            self._running.add(record)
            self._changed.notify_all()
        return record

    def end(self, record: RecordBuilder, fault: BaseException | None, *, gone: bool) -> TurnRecord:
        """Returns the finished record of a turn, which is written to the store soon. See `RecordBuilder.end`."""
        finished = record.end(fault, gone=gone)
        with self._changed:
            self._running.remove(record)
            self._over.append(record)
            self._changed.notify_all()
        return finished

    def flush(self, seconds: float = 10.0) -> None:
        """Has all turns that ended written to the store at once, and waits for that at most `seconds`."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._over and not self._writing, seconds)
            self._hurried = False

    def start(self) -> None:
        """Starts the recorder's thread if it does not run. Only logs a failure: the next call tries again."""
        if self.thread.is_running:
            return
        try:
            self.thread.start()
        except RuntimeError as fault:
            log.warning("turns can't be written down yet: %s", fault)
            return
        atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the thread when it has written the turns that ended. Waits for the thread at most STOP_SECONDS."""
        atexit.unregister(self.stop)
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self.thread.join(STOP_SECONDS)

    def _wait_for_turns(self) -> bool:
        """Waits until turns have to be written: GATHERING seconds after a turn ended, or once in PERIOD seconds while
        turns run or are listed as running. Returns False after `stop`, when all turns that ended are written.
        """
        # The heartbeat begins when its id is read, and pages list this worker from now on. If this fails, they list it
        # from its first turn on.
        with suppress(BridgeError, RuntimeError):
            _ = self._heartbeat.id
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._running or self._shown or self._stopped)
            if not self._over and (self._running or self._shown):
                self._changed.wait_for(lambda: self._over or self._stopped, PERIOD)
            if self._over:
                self._changed.wait_for(lambda: self._stopped or self._hurried, GATHERING)
            return bool(self._over) or not self._stopped

    def _write_turns(self) -> None:
        """Writes the turns that ended since the last call, and the turns that run now. If that fails, the turns that
        ended are dropped.
        """
        with self._changed:
            over, running = list(self._over), list(self._running)
            self._over.clear()
            self._writing = True
        try:
            self._write(over, running)
        finally:
            with self._changed:
                self._writing = False
                self._changed.notify_all()

    def _write(self, over: list[RecordBuilder], running: list[RecordBuilder]) -> None:
        """Writes the running turns, once in PERIOD, and the ended ones. If no turn runs any more, writes the empty list
        of running turns at once.
        """
        now = time.monotonic()
        if (running and now - self._shown_at >= PERIOD) or (self._shown and not running):
            self._shown, self._shown_at = bool(running), now
            self._activity.show_running(self._heartbeat.id, [record.record() for record in running])
        if over:
            self._write_ended_turns(over)

    def _write_ended_turns(self, over: list[RecordBuilder]) -> None:
        """Writes turns that ended. Writes the card of a tool once in CARD_RENEWAL seconds, or if it may be missing."""
        turns = [(record.record(), record.digests) for record in over]
        now = self._clock()
        offered = {digest for _, digests in turns for digest in digests.values()}
        due = {digest for digest in offered if now - self._known.get(digest, -inf) >= CARD_RENEWAL}
        self._keep_cards(over, due)
        fresh = self._activity.keep_ended_turns(turns)
        self._keep_cards(over, fresh - due)  # these cards had expired in the store
        self._known.update(dict.fromkeys(due, now))
        while len(self._known) > MOST_CARDS_REMEMBERED:
            self._known.popitem(last=False)

    def _keep_cards(self, over: list[RecordBuilder], digests: Collection[str]) -> None:
        self._activity.keep_cards(
            {card.digest: card for record in over for card in record.tool_cards(digests)}.values()
        )
