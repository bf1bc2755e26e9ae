"""Holds this worker's attempts. Its clients read the events from memory, those of other workers from the store."""

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
    """One attempt at a turn. `repeated`: the bridge does not know what the agent did in an earlier attempt."""

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
        """Adds an event of the agent, and wakes the clients that wait for it. The next flush writes it to the store."""
        if isinstance(event, MethodChosen):
            self.life.move(AttemptState.RUNNING, Mover.ATTEMPT)
        self.recording.add_size_of(event)
        self.stream.write(event)

    def end(self, fault: BaseException | None) -> None:
        """Ends the attempt. `fault` is the exception that ended the attempt, None if it ended well.
        Writes the end to the store before any client gets the end, because a client may repeat its request at once. If
        a first attempt failed before the agent got anything, the store forgets the attempt.
        """
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
    """Begins, ends and finds this worker's attempts by their tokens. The store keeps an answer for `keep` seconds."""

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
        """Returns a new attempt for a stored claim. Runs nothing yet. The next heartbeat names the attempt."""
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
        """Adds one part to the attempt with this token. Returns None if this worker does not make such an attempt."""
        with self._guard:
            attempt = self._attempts.get(token)
            if attempt is not None:
                attempt.parts += 1
            return attempt

    def leave(self, attempt: Attempt) -> bool:
        """Takes one part away. Returns whether no client of any worker waits for the attempt any more."""
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
        """Writes the new events of all attempts to the store, with each heartbeat."""
        with self._guard:
            attempts = [*self._attempts.values()]
        for attempt in attempts:
            attempt.recording.flush(attempt.stream.events)
