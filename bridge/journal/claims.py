"""Claims turns in the store, so that each turn has one current attempt, whichever worker makes it.

Clients and proxies repeat a POST request when its answer is late or its connection breaks. The first request runs the
turn. A repeat during the turn follows it from its start, also from another worker. A repeat after the end gets the
recorded events, unless they reached the client. A turn that failed or was lost with its worker is attempted again.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from bridge.errors import StoreUnavailable
from bridge.journal.recording import events_key, followed_key
from bridge.store.port import Put, Remove, RemoveList, Store

log = logging.getLogger(__name__)

# A client may repeat its request at the moment when it gets the answer, before the worker that sent the answer notes
# the delivery. So a repeat waits for this note at most MOMENT seconds, and reads the store every LOOK seconds.
MOMENT = 0.5
LOOK = 0.02


@dataclass(frozen=True, slots=True)
class Identity:
    """Identifies a turn by its `name`. `body` is a digest of the request's content.
    `kept`: a repeat gets the recorded answer even if the client has it already, except if the agent said nothing: a
    client that asks again then wants another answer. `keyed`: the name is an Idempotency-Key, and a repeat always gets
    the recorded answer. Such a name says nothing about the content, so a repeat must have the same `body`, too.
    """

    name: str
    body: str
    kept: bool = False
    keyed: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """The current attempt at a turn: `token` names the attempt, `turn` is the same for all attempts at the turn."""

    turn: str
    body: str
    token: str
    worker: str

    @classmethod
    def new(cls, body: str, worker: str, turn: str = "") -> Claim:
        """Returns a claim with a new token. With `turn` "", the claim is for a new turn."""
        return cls(turn or f"turn-{secrets.token_hex(12)}", body, secrets.token_hex(12), worker)

    @classmethod
    def from_text(cls, text: str) -> Claim:
        return cls(**json.loads(text))

    def to_text(self) -> str:
        """Returns the text that the store keeps for this claim. Equal claims have equal texts."""
        return json.dumps(asdict(self))


class Claims:
    """Claims one turn in the store. The claim expires `keep` seconds after its last renewal."""

    def __init__(self, store: Store, identity: Identity, keep: float) -> None:
        self._store = store
        self.key = claim_key(identity)
        self._keep = keep

    def take(self, claim: Claim) -> Claim | None:
        """Stores our claim if the turn has no claim, and returns None. Otherwise returns the claim that is there."""
        there = self._store.put_if_free(self.key, claim.to_text(), self._keep)
        return None if there is None else Claim.from_text(there)

    def take_if_free(self, claim: Claim, unchanged: Mapping[str, str | None]) -> bool:
        """Stores our claim if the turn has no claim, and the store's other keys are `unchanged`. Returns whether it is
        stored.
        """
        put = Put(self.key, claim.to_text(), self._keep)
        return self._store.change([put], unchanged={**unchanged, self.key: None})

    def take_over(self, other: Claim, claim: Claim) -> bool:
        """Replaces the claim `other` by ours. Returns False if `other` is not the claim of the turn any more."""
        return self._store.replace_if_unchanged(self.key, other.to_text(), claim.to_text(), self._keep)

    def is_claimed(self) -> bool:
        return self._store.get(self.key) is not None

    def restore(self, claim: Claim) -> bool:
        """Stores our claim again if the store has lost it. Returns whether it had."""
        return not self.is_claimed() and self.take(claim) is None

    def renew(self, claim: Claim) -> None:
        """Makes our claim expire `keep` seconds from now, if it is still the claim of the turn."""
        self.take_over(claim, claim)

    def forget(self, claim: Claim) -> None:
        """Removes an attempt that did nothing, so that the next counts as the first. Only logs a fault of the store."""
        try:
            self._store.change([Remove(self.key, claim.to_text()), RemoveList(events_key(claim.token))])
        except StoreUnavailable as fault:
            log.warning("a turn that never began could not be forgotten: %s", fault.message)

    def note_delivery(self, claim: Claim) -> None:
        """Removes the claim, because the client has the whole answer: the same request is then a new turn."""
        try:
            events = RemoveList(events_key(claim.token), unless=followed_key(claim.token))
            # Only our claim: the same request may be another turn by now.
            self._store.change([Remove(self.key, claim.to_text()), events])
        except StoreUnavailable as fault:
            log.warning("it could not be noted that an answer reached its client: %s", fault.message)

    def is_just_delivered(self, claim: Claim) -> bool:
        """Waits up to MOMENT seconds for `claim` to be removed or replaced, the sign that its answer was delivered."""
        until = time.monotonic() + MOMENT
        while time.monotonic() < until:
            if self._store.get(self.key) != claim.to_text():
                return True
            time.sleep(LOOK)
        return False


def claim_key(identity: Identity) -> str:
    return f"turn:{identity.name}"
