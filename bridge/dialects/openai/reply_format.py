"""Makes the form of the reply that a request asks for, the same for `response_format` and `text.format`."""

from __future__ import annotations

import json
from typing import Any

from bridge.errors import InvalidRequest
from bridge.json_text import find_lone_surrogate
from bridge.turn import ReplyFormat

_ALONE = "and nothing else: no code fence, no words around it."


def any_object() -> ReplyFormat:
    """Returns the form of `{"type": "json_object"}`."""
    return ReplyFormat(f"Answer with one valid JSON object {_ALONE}")


def value_of_schema(schema: Any, field: str) -> ReplyFormat:
    """Returns the form of `{"type": "json_schema"}`. `field` is where the request has the schema."""
    if not isinstance(schema, dict):
        raise InvalidRequest(f"`{field}` must be an object (a JSON Schema).", param=field)
    place = find_lone_surrogate(schema, field)
    if place:
        raise InvalidRequest(
            f"`{place}` has a text with half a surrogate pair, which is not a character. Send whole characters.",
            param=place,
        )
    text = json.dumps(schema, ensure_ascii=False)
    return ReplyFormat(f"Answer with one valid JSON value that fits this JSON Schema, {_ALONE}\n{text}", text, field)
