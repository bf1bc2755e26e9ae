"""Recognises a request that a client sends again: the same client asks the same, as a stream or not."""

from __future__ import annotations

import hashlib
import json

from bridge.dialects.base import Dialect
from bridge.errors import InvalidRequest
from bridge.journal.claims import Identity
from bridge.turn import JsonObject, Turn

KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255


def request_identity(named: str, dialect: Dialect, body: JsonObject, turn: Turn) -> Identity:
    """Returns the identity of the turn that a request asks for. `named` is its Idempotency-Key, "" if missing.
    Requests of one client are the same turn if they have the same key, or without a key the same content, in whatever
    order its fields are.
    """
    digest = _digest([dialect.name, turn.client, turn.aside, dialect.identity_fields(body)])
    if len(named) > LONGEST_KEY:
        raise InvalidRequest(f"`{KEY_HEADER}` may have {LONGEST_KEY} characters at most.", param=KEY_HEADER)
    if named:
        return Identity(_digest([turn.client, named]), digest, kept=True, keyed=True)
    return Identity(digest, digest, kept=turn.ends_with_result)


def _digest(value: object) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
