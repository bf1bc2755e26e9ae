"""Makes turns from messages of a transcript, as a dialect does."""

from __future__ import annotations

from typing import Any

from bridge.dialects.openai.turn_fields import transcript_fields
from bridge.turn import Message, Turn
from bridge.values import parse_own_files

RULES = parse_own_files("").side_rules


def turn_of(*messages: Message, model: str = "Ada", **fields: Any) -> Turn:
    """Returns the turn of a request with these messages. `fields` are other fields of the turn."""
    found = transcript_fields(
        messages,
        RULES,
        aside=fields.pop("aside", False),
        has_tools=bool(fields.get("tools")),
        reply_format=fields.pop("reply_format", None),
    )
    return Turn(model, **found, **fields)
