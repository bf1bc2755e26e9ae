"""Recognises a request that a client sends again: the same client asks the same.

The form of the reply may differ: one of the requests may ask for a stream, the other not.
"""

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
    """Returns the identity of the turn that a request asks for.

    `named` is the request's Idempotency-Key, "" if missing. With such a key, requests of one client with the same key
    are the same turn. Without a key, requests with the same content are. Raises InvalidRequest if the key is too long.
    """
    digest = _digest([dialect.name, turn.client, turn.aside, dialect.identity_fields(body)])
    if len(named) > LONGEST_KEY:
        raise InvalidRequest(f"`{KEY_HEADER}` may have {LONGEST_KEY} characters at most.", param=KEY_HEADER)
    if named:
        return Identity(_digest([turn.client, named]), digest, kept=True, keyed=True)
    return Identity(digest, digest, kept=turn.ends_with_result)


def _digest(value: object) -> str:
    """Returns a short hexadecimal digest of a JSON value."""
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=16).hexdigest()
