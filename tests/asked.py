"""Makes turns from messages of a transcript, as a dialect does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.dialects.openai.side_requests import find_side_rule
from bridge.dialects.openai.transcript import Message, call_fields, extract_new_input, extract_whole_conversation
from bridge.turn import Turn
from bridge.values import parse_side_rules

RULES = parse_side_rules("")


def turn_of(*messages: Message, model: str = "Ada", **fields: Any) -> Turn:
    """Returns the turn of a request with these messages. `fields` are other fields of the turn."""
    rule = find_side_rule(messages, bool(fields.get("tools")), RULES)
    aside = fields.pop("aside", False) or bool(rule)
    read_input = extract_whole_conversation if aside else extract_new_input
    found = read_input(messages, fields.get("reply_format", ""))
    turn = Turn(model, found, aside=aside, side_rule=rule, call_ids=CALL_IDS, **call_fields(messages))
    return replace(turn, **fields)
