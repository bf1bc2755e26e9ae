"""A client that does what clients do when something breaks: it sends the same request again."""

from __future__ import annotations

import time
from collections.abc import Callable

import requests

from tests.real.talk import Talk
from tests.real.world import Reply

# At least so many tries, and for at least so many seconds: a busy machine may take some to start anything anew.
TRIES = 30
PATIENCE = 60.0
# Shorter than a client's own: the service must not depend on its patience.
LONGEST_PAUSE = 0.25
MAY_BE_REPEATED = (409, 429, 500, 502, 503, 504)


def persist(ask: Callable[[], Reply]) -> Reply:
    """The answer, by as many requests as it takes."""
    told, latest = list[str](), time.monotonic() + PATIENCE
    while len(told) < TRIES or time.monotonic() < latest:
        try:
            reply = ask()
        except requests.RequestException as fault:
            told.append(type(fault).__name__)
            time.sleep(0.2)
            continue
        if reply.error is None:
            return reply
        assert reply.status in (200, *MAY_BE_REPEATED), reply.error
        told.append(f"{reply.status} {reply.error.get('code')}")
        time.sleep(min(LONGEST_PAUSE, float(reply.headers.get("Retry-After", 0.2))))
    raise AssertionError(f"no answer: {told}")


class PersistentTalk(Talk):
    """A conversation whose client repeats itself until it is answered."""

    def send(self, *messages: dict[str, object], **fields: object) -> Reply:
        return persist(lambda: super(PersistentTalk, self).send(*messages, **fields))
