"""Holds this worker's attempts. Its clients read the events from memory, those of other workers from the store."""

from __future__ import annotations

import logging
import threading
import time
from functools import partial

from bridge.errors import ClientGone
from bridge.journal.batches import End, failure_from_fault
from bridge.journal.claims import Claim, Claims, Identity
from bridge.journal.recording import Recording
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen
from bridge.turns.life import ATTEMPT_MOVES, AttemptState, Life, Mover
from bridge.turns.stream import TurnStream

log = logging.getLogger(__name__)

# A turn whose agent is free waits so long for a client that has just left, in seconds: the agent gets nothing for a
# client that does not come back, and most clients that time out ask again within a second.
RETURN = 2.0
# Seconds between two looks at whether that client is back.
LOOK = 0.05
_BEFORE_RUN = (AttemptState.WAITING, AttemptState.WAITING_ALONE, AttemptState.WITHDRAWN)


class Attempt:
    """One attempt at a turn. `repeated`: the bridge does not know what the agent did in an earlier attempt."""

    def __init__(self, claim: Claim, claims: Claims, recording: Recording, *, repeated: bool) -> None:
        self.claim = claim
        self.claims = claims
        self.recording = recording
        self.repeated = repeated
        self.stream = TurnStream()
        self.life = Life(AttemptState.WAITING, ATTEMPT_MOVES)
        self.began = time.time()
        self.parts = 1
        self.left_at = 0.0  # when its last client left, by `time.monotonic`
        self._watched = threading.Lock()

    @property
    def gone(self) -> threading.Event:
        """Set when no client waits for this attempt any more, and none is waited for."""
        return self.stream.gone

    @property
    def is_alone(self) -> bool:
        """Whether its last client left, and may come back."""
        return self.life.state in (AttemptState.WAITING_ALONE, AttemptState.RUNNING_ALONE)

    def go_on_alone(self) -> None:
        """Notes that its last client left."""
        self.left_at = time.monotonic()
        if not self.life.move(AttemptState.RUNNING_ALONE, Mover.CLIENT):
            self.life.move(AttemptState.WAITING_ALONE, Mover.CLIENT)

    def attend(self) -> None:
        """Notes that a client waits for it again, unless it was given up already."""
        if not self.life.move(AttemptState.RUNNING, Mover.REPEAT):
            self.life.move(AttemptState.WAITING, Mover.REPEAT)

    def give_up(self) -> bool:
        """Ends the wait for a client. Returns whether the agent's run has to be cancelled."""
        runs = self.life.move(AttemptState.CANCELLED, Mover.PATIENCE)
        if runs or self.life.move(AttemptState.WITHDRAWN, Mover.PATIENCE):
            self.gone.set()
        return runs

    def becomes_watched(self) -> bool:
        """Returns True once, because one thread is enough to watch it."""
        return self._watched.acquire(blocking=False)

    def write(self, event: AgentEvent) -> None:
        """Adds an event of the agent, and wakes the clients that wait for it. The next flush writes it to the store."""
        if isinstance(event, MethodChosen):
            self._begin_run()
        self.recording.add_size_of(event)
        self.stream.write(event)

    def _begin_run(self) -> None:
        """Moves to RUNNING. Without a client, waits for one that left less than RETURN seconds ago, then raises
        ClientGone.
        """
        while not self.life.move(AttemptState.RUNNING, Mover.ATTEMPT) and self.life.state in _BEFORE_RUN:
            if time.monotonic() >= self.left_at + RETURN:
                self.give_up()
            if self.gone.wait(LOOK):
                raise ClientGone.before_its_turn()

    def end(self, fault: BaseException | None) -> None:
        """Ends the attempt. `fault` is the exception that ended the attempt, None if it ended well.
        Writes the end to the store before any client gets the end, because a client may repeat its request at once. If
        a first attempt failed before the agent got anything, the store forgets the attempt.
        """
        did_nothing = fault is not None and not self.repeated and self.life.state in _BEFORE_RUN
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
    """Begins, ends and finds this worker's attempts by their tokens. The store keeps an answer for `keep` seconds. An
    attempt without clients goes on for `repeat_wait` seconds (see lingering.py).
    """

    def __init__(self, store: Store, keep: float, heartbeat: Heartbeat, repeat_wait: float) -> None:
        self.store = store
        self.keep = keep
        self.heartbeat = heartbeat
        self.repeat_wait = repeat_wait
        self._attempts: dict[str, Attempt] = {}
        self._guard = threading.Lock()
        heartbeat.set_turns_and_work(self._tokens, self._flush)

    def claims(self, identity: Identity) -> Claims:
        return Claims(self.store, identity, self.keep)

    def begin(self, claim: Claim, claims: Claims, *, repeated: bool) -> Attempt:
        """Returns a new attempt for a stored claim. Runs nothing yet. The next heartbeat names the attempt."""
        renew, restore = partial(claims.renew, claim), partial(self._restore, claims, claim)
        recording = Recording(self.store, claim.token, self.keep, renew, restore, claims.key)
        attempt = Attempt(claim, claims, recording, repeated=repeated)
        with self._guard:
            self._attempts[claim.token] = attempt
        self.heartbeat.beat_soon()
        return attempt

    def _restore(self, claims: Claims, claim: Claim) -> bool:
        """Stores a claim again if the store has lost it, after a beat: a repeat that finds the claim looks for that."""
        if claims.is_claimed():
            return False
        self.heartbeat.restore()
        return claims.restore(claim)

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
                attempt.attend()
            return attempt

    def leave(self, attempt: Attempt) -> bool:
        """Takes one part away. Returns whether it was the last one of this worker; then the attempt goes on alone."""
        with self._guard:
            attempt.parts -= 1
            if attempt.parts == 0:
                attempt.go_on_alone()
            return attempt.parts == 0

    def send_away(self, attempt: Attempt) -> None:
        """Takes one part away whose client was asked to come again."""
        with self._guard:
            attempt.parts -= 1

    def lose_followers(self, attempt: Attempt) -> None:
        """Notes that no client of another worker waits for the attempt any more."""
        with self._guard:
            if attempt.parts == 0:
                attempt.go_on_alone()

    def _tokens(self) -> list[str]:
        with self._guard:
            return [*self._attempts]

    def _flush(self) -> None:
        """Writes the new events of all attempts to the store, with each heartbeat."""
        with self._guard:
            attempts = [*self._attempts.values()]
        for attempt in attempts:
            attempt.recording.flush(attempt.stream.events)
