"""The turns of this worker: each runs in a thread of its own, which its record and its clients watch."""

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
from bridge.trace import Trace, current, set_current
from bridge.turn import ToolsOffered, Turn
from bridge.turns.live import LiveTurn
from bridge.turns.part import Journal, Part

log = logging.getLogger(__name__)

Reader = Callable[[TurnRecord], None]


@dataclass(frozen=True, slots=True)
class Turns:
    """`readers` are given the record of each turn when it is over, before its clients see the end."""

    conversation: Conversation
    journal: Journal
    recorder: Recorder
    readers: Sequence[Reader]

    def begin(self, turn: Turn, dialect: Dialect, identity: Identity, slot: Slot) -> Part:
        """The request's part in the turn. It runs the turn, or joins one that is the same."""

        def run(live: LiveTurn, repeated: bool) -> None:
            trace.is_turn = True
            begun = replace(turn, id=live.claim.turn, repeated=repeated)
            slot.share()
            try:
                Thread(target=work, args=(live, begun), name="turn", daemon=True).start()
            except BaseException:
                slot.leave()
                raise

        def work(live: LiveTurn, begun: Turn) -> None:
            try:
                fault = self._work(live, begun, dialect, trace)
                part.end(live, fault, repeated=begun.repeated)
            finally:
                slot.leave()

        trace = current()
        part = Part(self.journal, identity, run, partial(self._cancel, turn))
        part.begin()
        return part

    def _work(self, live: LiveTurn, turn: Turn, dialect: Dialect, trace: Trace) -> BaseException | None:
        """Run the turn. Returns what ended it, if it failed: its clients raise that, so no turn ends in silence."""
        set_current(trace)
        fault: BaseException | None = None
        try:
            record = self.recorder.begin(turn, dialect)
            try:
                for event in self.conversation.events(turn, live.gone):
                    record.see(event)
                    if not isinstance(event, ToolsOffered):
                        live.write(event)
            except BaseException as failure:
                fault = failure
            finished = self.recorder.end(record, fault, gone=live.gone.is_set())
            for read in self.readers:
                read(finished)
        except BaseException as failure:
            fault = fault or failure
        if fault is not None and not isinstance(fault, BridgeError):
            log.error("a fault of the bridge", exc_info=fault)
        return fault

    def _cancel(self, turn: Turn, run_id: str) -> None:
        try:
            self.conversation.cancel(turn, run_id)
        except BridgeError as failure:
            log.warning("a run that no client waits for could not be cancelled: %s", failure.message)
