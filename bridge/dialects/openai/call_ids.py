"""The ids of calls that clients see. They lead back to Letta's message without any memory of the bridge.

Letta's own id of a call is the model's, which need not be unique in a conversation; its message ids are.
"""

from __future__ import annotations

import re

_MESSAGE = re.compile(r"message-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_CLIENT = re.compile(r"call_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([0-9a-f]{3})")


def client_id(message_id: str, index: int) -> str:
    """40 characters out of `[a-z0-9_]`: as long as the strictest client allows."""
    parts = _MESSAGE.fullmatch(message_id)
    if parts is None:
        raise ValueError(f"not a message id: {message_id!r}")
    return f"call_{''.join(parts.groups())}{index:03x}"


def message_of(call_id: str) -> tuple[str, int] | None:
    """(message id, index of the call in it), or None for an id that is not of ours."""
    parts = _CLIENT.fullmatch(call_id)
    if parts is None:
        return None
    return "message-" + "-".join(parts.groups()[:5]), int(parts[6], 16)
