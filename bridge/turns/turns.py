"""Runs the turns of this worker, each in a thread that runs no other one, and records what happens in them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bridge.conversation import Conversation
from bridge.dialects.base import Dialect
from bridge.errors import BridgeError
from bridge.history.recorder import Recorder
from bridge.history.records import TurnRecord
from bridge.journal.claims import Identity
from bridge.limits.gate import Slot
from bridge.thread_pool import ThreadPool
from bridge.trace import current_trace, set_current_trace
from bridge.turn import RecordEvent, Turn
from bridge.turns.attempts import Attempt, Attempts
from bridge.turns.part import Part

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Turns:
    """Begins turns for requests. `on_end` gets the record of every attempt that ended, before clients see the end."""

    conversation: Conversation
    attempts: Attempts
    recorder: Recorder
    on_end: Sequence[Callable[[TurnRecord], None]]
    # A slot limits the turns, so no turn waits for a thread.
    threads: ThreadPool = field(default_factory=lambda: ThreadPool(sys.maxsize, "turn"))

    def begin(self, turn: Turn, dialect: Dialect, identity: Identity, slot: Slot) -> Part:
        """Returns the request's part in the turn. Uses a thread, unless the turn runs or its answer is recorded."""
        part = Part(self.attempts, identity, _TurnRunner(self, turn, dialect, slot))
        part.begin()
        return part

    def run(self, attempt: Attempt, turn: Turn, dialect: Dialect) -> None:
        """Runs the attempt to its end."""
        begun = replace(turn, id=attempt.claim.turn, repeated=attempt.repeated)
        self.attempts.end(attempt, self._run_turn(attempt, begun, dialect))

    def _run_turn(self, attempt: Attempt, turn: Turn, dialect: Dialect) -> BaseException | None:
        """Runs the turn, and writes its events and record. Returns the exception that ended the turn, None without one.
        A RecordEvent is written only to the record, because clients do not see it.
        """
        fault: BaseException | None = None
        try:
            record = self.recorder.begin(turn, dialect)
            try:
                for event in self.conversation.events(turn, attempt.gone):
                    record.add_event(event)
                    if not isinstance(event, RecordEvent):
                        attempt.write(event)
            except BaseException as failure:
                fault = failure
            finished = self.recorder.end(record, fault, gone=attempt.gone.is_set())
            for action in self.on_end:
                action(finished)
        except BaseException as failure:
            fault = fault or failure
        if fault is not None and not isinstance(fault, BridgeError):
            log.error("a fault of the bridge", exc_info=fault)
        return fault


class _TurnRunner:
    """Runs the turn of one request, in threads that hold the request's slot."""

    def __init__(self, turns: Turns, turn: Turn, dialect: Dialect, slot: Slot) -> None:
        self._turns = turns
        self._turn = turn
        self._dialect = dialect
        self._slot = slot
        self._trace = current_trace()

    def start(self, attempt: Attempt) -> None:
        self._slot.share()
        try:
            self._turns.threads.run(partial(self._run_in_thread, attempt))
        except BaseException:
            self._slot.leave()
            raise
        self._trace.is_turn = True  # the turn has a line of its own in the log

    def _run_in_thread(self, attempt: Attempt) -> None:
        set_current_trace(self._trace)
        try:
            self._turns.run(attempt, self._turn, self._dialect)
        finally:
            set_current_trace(None)
            self._slot.leave()

    def cancel(self, run_id: str) -> None:
        try:
            self._turns.conversation.cancel(self._turn, run_id)
        except BridgeError as failure:
            log.warning("a run that no client waits for could not be cancelled: %s", failure.message)

    def note_lingering(self, attempt: Attempt) -> None:
        try:
            turn = replace(self._turn, id=attempt.claim.turn)
            self._turns.conversation.note_lingering(turn, attempt.claim.token, attempt.began)
        except BridgeError as failure:
            log.warning("it could not be noted that a turn waits for its client: %s", failure.message)
