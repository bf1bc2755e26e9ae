"""A client that sends a request again when it fails, as real clients do."""

from __future__ import annotations

import time
from collections.abc import Callable

import requests

from tests.real.talk import Talk
from tests.real.world import Reply

# At least this many attempts, and for at least this many seconds: a busy machine may need long to restart something.
TRIES = 30
PATIENCE = 60.0
# Shorter than a real client's: the service must not depend on the patience of clients.
LONGEST_PAUSE = 0.25
MAY_BE_REPEATED = (409, 429, 500, 502, 503, 504)


def persist(ask: Callable[[], Reply]) -> Reply:
    """Asks until there is an answer."""
    refusals, latest = list[str](), time.monotonic() + PATIENCE
    while len(refusals) < TRIES or time.monotonic() < latest:
        try:
            reply = ask()
        except requests.RequestException as fault:
            refusals.append(type(fault).__name__)
            time.sleep(0.2)
            continue
        if reply.error is None:
            return reply
        assert reply.status in (200, *MAY_BE_REPEATED), reply.error
        refusals.append(f"{reply.status} {reply.error.get('code')}")
        time.sleep(min(LONGEST_PAUSE, float(reply.headers.get("Retry-After", 0.2))))
    raise AssertionError(f"no answer: {refusals}")


class PersistentTalk(Talk):
    """A conversation whose client repeats each request until it is answered."""

    def send(self, *messages: dict[str, object], **fields: object) -> Reply:
        return persist(lambda: super(PersistentTalk, self).send(*messages, **fields))
