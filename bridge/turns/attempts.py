"""The attempts at turns that this worker makes. A thread writes each, clients here read it, and the store keeps it."""

from __future__ import annotations

import logging
import threading
from functools import partial

from bridge.errors import StoreUnavailable
from bridge.journal.batches import End, failure_from_fault
from bridge.journal.claims import Claim, Claims, Identity
from bridge.journal.recording import Recording, is_followed
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen
from bridge.turns.life import ATTEMPT_MOVES, AttemptState, Life, Mover
from bridge.turns.stream import TurnStream

log = logging.getLogger(__name__)


class Attempt:
    """One attempt at a turn. `repeated`: it is not known what became of an earlier one.

    `parts` counts the requests of this worker that wait for it.
    """

    def __init__(self, claim: Claim, claims: Claims, recording: Recording, *, repeated: bool) -> None:
        self.claim = claim
        self.claims = claims
        self.recording = recording
        self.repeated = repeated
        self.stream = TurnStream()
        self.life = Life(AttemptState.WAITING, ATTEMPT_MOVES)
        self.parts = 1

    @property
    def gone(self) -> threading.Event:
        """Set when no client waits for this attempt any more."""
        return self.stream.gone

    @property
    def is_running(self) -> bool:
        return self.life.state is AttemptState.RUNNING

    def write(self, event: AgentEvent) -> None:
        if isinstance(event, MethodChosen):
            self.life.move(AttemptState.RUNNING, Mover.ATTEMPT)
        self.recording.add_size_of(event)
        self.stream.write(event)

    def end(self, fault: BaseException | None) -> None:
        """Ends the attempt. The store knows it before any client does: a client may ask again at once."""
        did_nothing = fault is not None and not self.repeated and self.life.state is AttemptState.WAITING
        self.life.move(AttemptState.FAILED if fault else AttemptState.ENDED, Mover.ATTEMPT)
        failure = None if fault is None else failure_from_fault(fault)
        end = End("failed" if fault else "well", failure, self.gone.is_set())
        try:
            self.recording.end(self.stream.events, end)
            if did_nothing:
                self.claims.forget(self.claim)
        except Exception:  # the clients must see the end nevertheless
            log.exception("the end of a turn could not be written to the store")
        self.stream.finish(end)


class Attempts:
    """The attempts of this worker, by their tokens. With each heartbeat they are named and written to the store.

    For `keep` seconds, an answer waits in the store for a client that missed it.
    """

    def __init__(self, store: Store, keep: float, heartbeat: Heartbeat) -> None:
        self.store = store
        self.keep = keep
        self.heartbeat = heartbeat
        self._attempts: dict[str, Attempt] = {}
        self._guard = threading.Lock()
        heartbeat.set_turns_and_work(self._tokens, self._flush)

    def claims(self, identity: Identity) -> Claims:
        return Claims(self.store, identity, self.keep)

    def begin(self, claim: Claim, claims: Claims, *, repeated: bool) -> Attempt:
        recording = Recording(self.store, claim.token, self.keep, partial(claims.renew, claim))
        attempt = Attempt(claim, claims, recording, repeated=repeated)
        with self._guard:
            self._attempts[claim.token] = attempt
        self.heartbeat.beat_soon()
        return attempt

    def end(self, attempt: Attempt, fault: BaseException | None) -> None:
        attempt.end(fault)
        with self._guard:
            self._attempts.pop(attempt.claim.token, None)

    def join(self, token: str) -> Attempt | None:
        """Returns the attempt with one more part, if this worker makes it."""
        with self._guard:
            attempt = self._attempts.get(token)
            if attempt is not None:
                attempt.parts += 1
            return attempt

    def leave(self, attempt: Attempt) -> bool:
        """Takes one part away. Returns whether no client waits any more, here or in another worker."""
        with self._guard:
            attempt.parts -= 1
            if attempt.parts > 0:
                return False
        try:
            return not is_followed(self.store, attempt.claim.token)
        except StoreUnavailable:  # a client of another worker may follow
            return False

    def _tokens(self) -> list[str]:
        with self._guard:
            return [*self._attempts]

    def _flush(self) -> None:
        with self._guard:
            attempts = [*self._attempts.values()]
        for attempt in attempts:
            attempt.recording.flush(attempt.stream.events)
