"""Makes and reads the ids of responses and of their items."""

from __future__ import annotations

import hashlib
import re
import secrets

_TURN = re.compile(r"turn-([0-9a-f]{24})")
_RESPONSE = re.compile(r"resp_([0-9a-f]{24})([0-9a-f]{8})")
_MESSAGE = re.compile(r"message-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")


def response_id(turn_id: str) -> str:
    """Returns the id of the response to a turn: the same for each request that gets the turn's answer."""
    turn = _TURN.fullmatch(turn_id)
    if turn is None:
        raise ValueError(f"not a turn's id: {turn_id!r}")
    return f"resp_{turn[1]}{_checksum(turn[1])}"


def turn_of_response(given: str) -> str | None:
    """Returns the id of the turn from an id of `response_id`; None for an id that the bridge did not make."""
    parts = _RESPONSE.fullmatch(given)
    return f"turn-{parts[1]}" if parts and _checksum(parts[1]) == parts[2] else None


def _checksum(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=4, person=b"response id").hexdigest()


class ItemIds:
    """Makes the ids of one response's items: of the Letta message that the item comes from, so that they stay the same
    when the response is made again. A second item of the same kind and message gets a number.
    """

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def new(self, prefix: str, message_id: str) -> str:
        parts = _MESSAGE.fullmatch(message_id)
        made = f"{prefix}_{''.join(parts.groups()) if parts else secrets.token_hex(16)}"
        self._used[made] = self._used.get(made, 0) + 1
        return made if self._used[made] == 1 else f"{made}{self._used[made]:03x}"
