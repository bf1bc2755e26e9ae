"""Runs the turns of this worker, each in a thread of its own, and records what happens in them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread

from bridge.conversation import Conversation
from bridge.dialects.base import Dialect
from bridge.errors import BridgeError
from bridge.history.recorder import Recorder
from bridge.history.records import TurnRecord
from bridge.journal.claims import Identity
from bridge.limits.gate import Slot
from bridge.trace import current_trace, set_current_trace
from bridge.turn import ToolsOffered, Turn
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

    def begin(self, turn: Turn, dialect: Dialect, identity: Identity, slot: Slot) -> Part:
        """Returns the request's part in the turn. Starts a thread, unless the turn runs or its answer is recorded."""
        trace = current_trace()

        def start_thread(attempt: Attempt) -> None:
            slot.share()
            try:
                Thread(target=run_in_thread, args=(attempt,), name="turn", daemon=True).start()
            except BaseException:
                slot.leave()
                raise
            trace.is_turn = True  # the turn has a line of its own in the log

        def run_in_thread(attempt: Attempt) -> None:
            set_current_trace(trace)
            begun = replace(turn, id=attempt.claim.turn, repeated=attempt.repeated)
            try:
                self.attempts.end(attempt, self._run_turn(attempt, begun, dialect))
            finally:
                slot.leave()

        part = Part(self.attempts, identity, start_thread, partial(self._cancel, turn))
        part.begin()
        return part

    def _run_turn(self, attempt: Attempt, turn: Turn, dialect: Dialect) -> BaseException | None:
        """Runs the turn, and writes its events and record. Returns the exception that ended the turn, None without one.
        ToolsOffered is written only to the record, because clients do not see it.
        """
        fault: BaseException | None = None
        try:
            record = self.recorder.begin(turn, dialect)
            try:
                for event in self.conversation.events(turn, attempt.gone):
                    record.add_event(event)
                    if not isinstance(event, ToolsOffered):
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

    def _cancel(self, turn: Turn, run_id: str) -> None:
        """Cancels Letta's run of a turn that no client waits for. Raises nothing. `run_id` is "" if it is unknown."""
        try:
            self.conversation.cancel(turn, run_id)
        except BridgeError as failure:
            log.warning("a run that no client waits for could not be cancelled: %s", failure.message)
