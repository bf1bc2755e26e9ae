"""The fields of a `Turn` that follow from its transcript, the same in all of OpenAI's APIs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.dialects.openai.side_requests import find_side_rule
from bridge.dialects.openai.transcript import (
    Transcript,
    call_fields,
    extract_input_aside,
    extract_new_input,
)
from bridge.turn import ReplyFormat, SideRule


def transcript_fields(
    transcript: Transcript,
    side_rules: Sequence[SideRule],
    *,
    aside: bool,
    has_tools: bool,
    reply_format: ReplyFormat | None,
) -> dict[str, Any]:
    """Returns these fields by name. The request is aside by `aside` or by a side rule."""
    rule = find_side_rule(transcript, has_tools, side_rules)
    aside = aside or rule is not None
    read_input = extract_input_aside if aside else extract_new_input
    return {
        "transcript": tuple(message for message in transcript if message.role != "system"),
        "new_input": read_input(transcript, reply_format.instruction if reply_format else ""),
        "aside": aside,
        "side_rule": rule,
        "reply_format": reply_format,
        "call_ids": CALL_IDS,
        **call_fields(transcript),
    }
