"""The journal of turns: a request that comes again is the same turn, and reaches the agent once.

Clients and proxies repeat a POST when its answer is late or its connection breaks. The first request of a turn claims
it and runs it. A repeat that comes meanwhile follows it from its start, here or from another worker; one that comes
after it ended gets its events again, unless they reached the client. What failed, or was lost with its worker, is
attempted anew, and the attempt is told that there was one before.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

from bridge.errors import IdempotencyKeyReused, RequestConflict, StoreUnavailable, TurnLost
from bridge.journal.batches import End
from bridge.journal.follower import NOTHING_SHOWN, Follower
from bridge.journal.recording import Claim, Recording, Worker, events_key
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen

log = logging.getLogger(__name__)

# A client may repeat itself the moment it has its answer, before this worker has noted that it has.
MOMENT = 0.5
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes requests the same turn: `name`. One that is `kept` is answered again even when the client had it.

    Not so when the agent had nothing to say: who asks again then wants an answer. One that is `keyed` has the same
    answer always; its name is an Idempotency-Key and says nothing of the `body`, which must then be the same, too.
    """

    name: str
    body: str
    kept: bool = False
    keyed: bool = False


Run = Callable[[str, bool, threading.Event], Iterator[AgentEvent]]


class Journal:
    """`keep`: for how many seconds an answer waits for a client that did not get it."""

    def __init__(self, store: Store, keep: float) -> None:
        self.store = store
        self.keep = keep
        self.worker = Worker(store, keep)

    def attempt(self, identity: Identity, run: Run) -> Attempt:
        """`run` is given the turn's id, whether there was an attempt before, and what tells that nobody waits."""
        return Attempt(self, identity, run)


class Attempt:
    """One request's part in a turn."""

    def __init__(self, journal: Journal, identity: Identity, run: Run) -> None:
        self._journal = journal
        self._identity = identity
        self._run = run
        self._key = f"turn:{identity.name}"
        self._claim: Claim | None = None
        self._recording: Recording | None = None
        self._left = False

    def events(self, gone: threading.Event) -> Iterator[AgentEvent]:
        """The turn's events from its start; `gone` is set when this request's client has gone."""
        store, keep = self._journal.store, self._journal.keep
        mine = Claim(f"turn-{secrets.token_hex(12)}", self._identity.body, _token(), self._journal.worker.id)
        while not gone.is_set():
            there = store.claim(self._key, mine.text(), keep)
            if there is None:
                yield from self._run_it(mine, False, gone)
                return
            other = Claim(**json.loads(there))
            if other.body != mine.body:
                raise IdempotencyKeyReused("This Idempotency-Key came before with another request body.")
            if (yield from self._take_part(other, gone)):
                return
            again = replace(mine, turn=other.turn, token=_token())
            if not gone.is_set() and store.swap(self._key, there, again.text(), keep):
                yield from self._run_it(again, True, gone)
                return

    def delivered(self) -> None:
        """The client has the whole answer: the same request is a new turn from now on."""
        claim, store = self._claim, self._journal.store
        if claim is None or self._identity.kept:
            return
        try:
            store.unclaim(self._key, claim.text())  # it may be another turn's by now
            if not Follower.is_there(store, claim.token):
                store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("that an answer reached its client could not be kept: %s", fault.message)

    def step_back(self) -> None:
        """The client is told to come again; the turn goes on."""
        self._leave()

    def leave(self) -> bool:
        """The client goes without the end of its answer; whether nobody waits for the turn any more."""
        if not self._leave() or self._recording is None:
            return False
        self._recording.gone.set()
        return True

    def _leave(self) -> bool:
        recording, left, self._left = self._recording, self._left, True
        if recording is None or left or not self._journal.worker.leave(recording):
            return False
        try:
            return not Follower.is_there(self._journal.store, recording.token)
        except StoreUnavailable:
            return False

    def _run_it(self, claim: Claim, repeated: bool, gone: threading.Event) -> Iterator[AgentEvent]:
        worker = self._journal.worker
        recording = worker.begin(claim, self._key, gone)
        self._claim, self._recording = claim, recording
        begun = False
        try:
            for event in self._run(claim.turn, repeated, recording.gone):
                begun = begun or isinstance(event, MethodChosen)
                recording.write(event)
                yield event
        except BaseException as fault:
            worker.end(recording, fault)
            if not begun and not repeated:
                self._forget(claim)
            raise
        worker.end(recording, None)

    def _forget(self, claim: Claim) -> None:
        """Nothing was done: the next attempt is the first."""
        try:
            self._journal.store.unclaim(self._key, claim.text())
            self._journal.store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("a turn that never began could not be forgotten: %s", fault.message)

    def _take_part(self, other: Claim, gone: threading.Event) -> Generator[AgentEvent, None, bool]:
        """The events of an attempt that is under way or over; False when a new one has to be made."""
        follower = Follower(self._journal.store, other.token, other.worker)
        end = follower.ended()
        if end is not None:
            return (yield from self._after(other, end, follower))
        self._claim = other
        self._recording = self._journal.worker.join(other.token)
        if self._recording is not None:
            end = yield from follower.here(self._recording, gone)
        else:
            end = yield from follower.elsewhere(gone)
        return self._is_over(end, follower)

    def _after(self, other: Claim, end: End, follower: Follower) -> Generator[AgentEvent, None, bool]:
        if end.how != "well" or not self._is_to_be_had(other, follower):
            return False
        self._claim = other
        yield from follower.recorded()
        return True

    def _is_to_be_had(self, other: Claim, follower: Follower) -> bool:
        """Whether an answer that is there is what a repeat is given."""
        if self._identity.kept:
            return self._identity.keyed or not follower.is_empty
        return not self._is_removed_now(other)

    def _is_removed_now(self, other: Claim) -> bool:
        """Whether its first client has it, which this worker or another is about to note."""
        until = time.monotonic() + MOMENT
        while time.monotonic() < until:
            if self._journal.store.get(self._key) != other.text():
                return True
            time.sleep(LOOK)
        return False

    def _is_over(self, end: End | None, follower: Follower) -> bool:
        """Whether this request has all that it will get of the attempt. Raises what the attempt failed by."""
        if end is not None and end.how == "well":
            return True
        lost = end is None or end.abandoned
        if lost and follower.shown == NOTHING_SHOWN:
            self._claim = self._recording = None
            return False
        if end is None:
            raise TurnLost("The worker that ran this turn is gone. Send the request again to get its answer.")
        if end.failure is not None:
            raise end.failure
        raise RequestConflict("This turn ran elsewhere, and its answer is too large to be had from there.")


def _token() -> str:
    return secrets.token_hex(12)
