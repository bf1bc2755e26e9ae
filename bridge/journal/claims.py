"""Claims turns in the store, so that each turn has one current attempt, whichever worker makes it.

Clients and proxies repeat a POST request when its answer is late or its connection breaks. The first request of a turn
claims the turn and runs it. A repeat that comes while the turn runs follows it from its start, also from another
worker. A repeat that comes after the end gets the recorded events again, unless they reached the client. A turn that
failed, or was lost with its worker, is attempted again, and the new attempt knows that there was an earlier attempt.
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

# A client may repeat its request at the moment when it gets the answer, before the worker that sent the answer notes
# the delivery. So a repeat waits for this note at most MOMENT seconds, and reads the store every LOOK seconds.
MOMENT = 0.5
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies a turn: requests with the same `name` are the same turn. `body` is a digest of the request's content.

    `kept`: a repeat gets the recorded answer even if the client has it already. The exception is an answer in which the
    agent said nothing: a client that asks again then wants another answer. `keyed`: the name comes from an
    Idempotency-Key, and a repeat always gets the recorded answer. Such a name says nothing about the content, so the
    `body` of a repeat must be the same, too.
    """

    name: str
    body: str
    kept: bool = False
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The current attempt at a turn, as the store has it: `token` names the attempt, `worker` makes the attempt.

    `turn` is the same for all attempts at the turn. `body` is a digest of the request's content.
    """

    turn: str
    body: str
    token: str
    worker: str

    @classmethod
    def new(cls, body: str, worker: str, turn: str = "") -> Claim:
        """Returns a claim with a new token, for an attempt that `worker` makes at `turn`. "": at a new turn."""
        return cls(turn or f"turn-{secrets.token_hex(12)}", body, secrets.token_hex(12), worker)

    @classmethod
    def from_text(cls, text: str) -> Claim:
        """Returns the claim of a text that `to_text` returned."""
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """Returns the text that the store keeps for this claim. Equal claims have equal texts."""
        return json.dumps(asdict(self))


class Claims:
    """Claims one turn in the store. The claim expires `keep` seconds after its last renewal."""

    def __init__(self, store: Store, identity: Identity, keep: float) -> None:
        self._store = store
        self._key = claim_key(identity)
        self._keep = keep

    def take(self, claim: Claim) -> Claim | None:
        """Stores our claim of the turn if the turn has no claim.

        Returns None if our claim is stored now. Otherwise returns the claim that the turn has already.
        """
        there = self._store.put_if_free(self._key, claim.to_text(), self._keep)
        return None if there is None else Claim.from_text(there)

    def take_over(self, other: Claim, claim: Claim) -> bool:
        """Replaces the stored claim `other` by our claim. Returns whether our claim is stored now.

        Returns False if `other` is not the claim of the turn any more, for example because another worker was faster.
        """
        return self._store.replace_if_unchanged(self._key, other.to_text(), claim.to_text(), self._keep)

    def renew(self, claim: Claim) -> None:
        """Makes our claim expire `keep` seconds from now. Does nothing if the turn has another claim or none by now."""
        self.take_over(claim, claim)

    def forget(self, claim: Claim) -> None:
        """Removes the claim and the events of an attempt that did nothing. The next attempt counts as the first.

        If the store fails, only logs that.
        """
        try:
            self._store.remove_if_unchanged(self._key, claim.to_text())
            self._store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("a turn that never began could not be forgotten: %s", fault.message)

    def note_delivery(self, claim: Claim) -> None:
        """Notes that the client has the whole answer, by removing the claim.

        From now on, the same request is a new turn. The recorded events are removed, too, unless a client of another
        worker still reads them. If the store fails, only logs that.
        """
        try:
            self._store.remove_if_unchanged(self._key, claim.to_text())  # the same request may be another turn by now
            if not is_followed(self._store, claim.token):
                self._store.remove(events_key(claim.token))
        except StoreUnavailable as fault:
            log.warning("it could not be noted that an answer reached its client: %s", fault.message)

    def is_just_delivered(self, claim: Claim) -> bool:
        """Returns whether another thread or worker notes the delivery of the answer within MOMENT seconds from now.

        Returns True as soon as `claim` is not the stored claim of the turn any more. Waits MOMENT seconds otherwise.
        """
        until = time.monotonic() + MOMENT
        while time.monotonic() < until:
            if self._store.get(self._key) != claim.to_text():
                return True
            time.sleep(LOOK)
        return False


def claim_key(identity: Identity) -> str:
    """Returns the store's key for the claim of the turn with this identity."""
    return f"turn:{identity.name}"
