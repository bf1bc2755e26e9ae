"""Which attempt at a turn is the current one. The store says it, in a text that the first request of the turn claims.

Clients and proxies repeat a POST when its answer is late or its connection breaks. The first request of a turn claims
it and runs it. A repeat that comes while it runs follows it from its start, here or from another worker. A repeat that
comes after its end gets its events again, unless they reached the client. A turn that failed, or was lost with its
worker, is attempted again, and the new attempt knows that there was one before.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import asdict, dataclass

from bridge.errors import StoreUnavailable
from bridge.journal.recording import events_key, is_followed
from bridge.store.port import Store

log = logging.getLogger(__name__)

# A client may repeat its request in the moment when it gets the answer, before this worker has noted that.
MOMENT = 0.5
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """What makes requests the same turn: they have the same `name`.

    `kept`: the turn is answered again even when the client has its answer. The exception is an answer in which the
    agent said nothing: a client that asks again then wants an answer. `keyed`: the name is an Idempotency-Key, and the
    answer is always the same. Such a name says nothing about the `body`, which must then be the same, too.
    """

    name: str
    body: str
    kept: bool = False
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """Says who makes the current attempt at a turn: `token` names the attempt, `worker` the process that makes it."""

    turn: str
    body: str
    token: str
    worker: str

    @classmethod
    def new(cls, body: str, worker: str, turn: str = "") -> Claim:
        """Returns the claim of a new attempt, at a new turn if none is named."""
        return cls(turn or f"turn-{secrets.token_hex(12)}", body, secrets.token_hex(12), worker)

    @classmethod
    def from_text(cls, text: str) -> Claim:
        return cls(**json.loads(text))

    def to_text(self) -> str:
        return json.dumps(asdict(self))


class Claims:
    """Claims one turn in the store, for `keep` seconds after the last write."""

    def __init__(self, store: Store, identity: Identity, keep: float) -> None:
        self._store = store
        self._key = claim_key(identity)
        self._keep = keep

    def take(self, claim: Claim) -> Claim | None:
        """Claims the turn if it is free. Returns None if it is ours now, otherwise the claim that is there."""
        there = self._store.put_if_free(self._key, claim.to_text(), self._keep)
        return None if there is None else Claim.from_text(there)

    def take_over(self, other: Claim, claim: Claim) -> bool:
        """Puts our claim in the place of another one. Returns False if that one is not there any more."""
        return self._store.replace_if_unchanged(self._key, other.to_text(), claim.to_text(), self._keep)

    def renew(self, claim: Claim) -> None:
        """Keeps our claim for longer, if it is still there."""
        self.take_over(claim, claim)

    def forget(self, claim: Claim) -> None:
        """Forgets an attempt that did nothing: the next attempt is the first."""
        try:
            self._store.remove_if_unchanged(self._key, claim.to_text())
            self._store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("a turn that never began could not be forgotten: %s", fault.message)

    def note_delivery(self, claim: Claim) -> None:
        """Notes that the client has the whole answer: from now on, the same request is a new turn."""
        try:
            self._store.remove_if_unchanged(self._key, claim.to_text())  # the same request may be another turn by now
            if not is_followed(self._store, claim.token):
                self._store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("it could not be noted that an answer reached its client: %s", fault.message)

    def is_just_delivered(self, claim: Claim) -> bool:
        """Returns whether its first client has the answer, which this worker or another one is about to note."""
        until = time.monotonic() + MOMENT
        while time.monotonic() < until:
            if self._store.get(self._key) != claim.to_text():
                return True
            time.sleep(LOOK)
        return False


def claim_key(identity: Identity) -> str:
    return f"turn:{identity.name}"
