"""Decides how long an attempt goes on without a client.

A client that timed out closes its connection, and sends the same request again a moment later. It joins the attempt
then. A client that left in the middle of a streamed answer has stopped it, and its run is cancelled at once.
"""

from __future__ import annotations

import logging
import time
from threading import Thread
from typing import Protocol

from bridge.errors import StoreUnavailable
from bridge.journal.lingering import ask_to_end, is_asked_to_end
from bridge.journal.recording import is_followed
from bridge.turns.attempts import Attempt, Attempts

log = logging.getLogger(__name__)

# Seconds between two looks at an attempt whose last client left.
LOOK = 0.25


class Runner(Protocol):
    """Runs the attempts at one request's turn, and ends them."""

    def start(self, attempt: Attempt) -> None:
        """Runs the attempt in a thread of its own."""

    def cancel(self, run_id: str) -> None:
        """Cancels the turn's run at Letta, "" if its id is unknown. Raises nothing."""

    def note_lingering(self, attempt: Attempt) -> None:
        """Lets later turns of the conversation know that the attempt lingers. Raises nothing."""


class Lingering:
    """Ends an attempt `attempts.repeat_wait` seconds after its last client left, or as soon as a later turn of the same
    conversation waits. Until then the attempt keeps its slot (limits/gate.py), so a client can't pile up turns.
    """

    def __init__(self, attempts: Attempts, runner: Runner) -> None:
        self._attempts = attempts
        self._runner = runner

    def leave(self, attempt: Attempt, *, may_come_back: bool) -> None:
        """Takes a client of this worker away from the attempt. Without clients, ends it now or has it watched."""
        if not self._attempts.leave(attempt):
            return
        lingers = may_come_back and self._attempts.repeat_wait > 0
        if not lingers and not self._is_followed(attempt):
            self._end(attempt)
        elif attempt.becomes_watched():
            self._start_watch(attempt)

    def leave_elsewhere(self, token: str, *, may_come_back: bool) -> None:
        """Does the same for an attempt of another worker: that one notices that the client follows it no more."""
        if may_come_back:
            return
        try:
            ask_to_end(self._attempts.store, token)
        except StoreUnavailable as fault:
            log.warning("a turn of another worker could not be asked to end: %s", fault.message)

    def _start_watch(self, attempt: Attempt) -> None:
        try:
            Thread(target=self._watch, args=(attempt,), name="lingering", daemon=True).start()
        except RuntimeError:  # no thread is left
            self._end(attempt)

    def _watch(self, attempt: Attempt) -> None:
        """Watches the attempt until its end, because it may lose its last client again and again."""
        noted = 0.0
        followed = False
        while attempt.stream.end is None and not attempt.gone.is_set():
            if followed:
                followed = self._is_followed(attempt)
                if not followed:
                    self._attempts.lose_followers(attempt)
            elif attempt.is_alone:
                followed = self._is_followed(attempt)
                if followed:
                    attempt.attend()
                elif self._has_no_chance(attempt):
                    self._end(attempt)
                elif noted != attempt.left_at:
                    noted = attempt.left_at
                    self._runner.note_lingering(attempt)
            time.sleep(LOOK)

    def _has_no_chance(self, attempt: Attempt) -> bool:
        """Returns whether no repeat is waited for any more."""
        late = time.monotonic() >= attempt.left_at + self._attempts.repeat_wait
        try:
            return late or is_asked_to_end(self._attempts.store, attempt.claim.token)
        except StoreUnavailable:
            return False

    def _is_followed(self, attempt: Attempt) -> bool:
        try:
            return is_followed(self._attempts.store, attempt.claim.token)
        except StoreUnavailable:  # a client of another worker may follow
            return True

    def _end(self, attempt: Attempt) -> None:
        if attempt.give_up():
            self._runner.cancel(attempt.stream.run_id)
