"""What makes two requests the same turn: who asks, and all that is asked but for the form of the reply."""

from __future__ import annotations

import hashlib
import json

from bridge.errors import InvalidRequest
from bridge.journal.journal import Identity
from bridge.keys import ApiKey
from bridge.turn import JsonObject, Turn

KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255
_FORM = ("stream", "stream_options")


def identity_of(named: str, key: ApiKey | None, body: JsonObject, turn: Turn) -> Identity:
    """A call is made once, so the results of one that come again are a repeat, whenever that is."""
    asked = {name: value for name, value in body.items() if name not in _FORM}
    digest = _digest([key.name if key else "", turn.aside, asked])
    if len(named) > LONGEST_KEY:
        raise InvalidRequest(f"`{KEY_HEADER}` may have {LONGEST_KEY} characters at most.", param=KEY_HEADER)
    if named:
        return Identity(_digest([key.name if key else "", named]), digest, kept=True, keyed=True)
    return Identity(digest, digest, kept=turn.messages[-1].role == "tool")


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()
