"""Makes and reads the ids of tool calls, in a form that the strictest of OpenAI's clients accepts."""

from __future__ import annotations

import re
import secrets

_MESSAGE = re.compile(r"message-([0-9a-f]{8})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{4})-([0-9a-f]{12})")
_OF_MESSAGE = re.compile(r"call_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([0-9a-f]{3})")
_ENDING = "call_end_"


class OpenAICallIds:
    """An id of a tool call has at most 40 characters, all of `[a-z0-9_]`."""

    def id_in_message(self, message_id: str, index: int) -> str:
        parts = _MESSAGE.fullmatch(message_id)
        if parts is None:
            raise ValueError(f"not a message id: {message_id!r}")
        return f"call_{''.join(parts.groups())}{index:03x}"

    def message_and_index(self, call_id: str) -> tuple[str, int] | None:
        parts = _OF_MESSAGE.fullmatch(call_id)
        if parts is None:
            return None
        return "message-" + "-".join(parts.groups()[:5]), int(parts[6], 16)

    def new_ending_id(self) -> str:
        return _ENDING + secrets.token_hex(12)

    def is_ending_id(self, call_id: str) -> bool:
        return call_id.startswith(_ENDING)


CALL_IDS = OpenAICallIds()
