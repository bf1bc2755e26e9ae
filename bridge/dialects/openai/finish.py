"""Says in OpenAI's words why a reply ended."""

from __future__ import annotations

# Letta's stop reasons for a normal end, and OpenAI's finish reasons for them.
FINISH_REASONS = {
    "end_turn": "stop",
    "requires_approval": "stop",
    "tool_rule": "stop",
    "no_tool_call": "stop",
    "max_steps": "length",
    "max_tokens_exceeded": "length",
}


def finish_reason(stop_reason: str, called: bool) -> str:
    """Returns OpenAI's `finish_reason` for Letta's `stop_reason`. `called`: the reply contains tool calls."""
    return "tool_calls" if called else FINISH_REASONS.get(stop_reason, "stop")
