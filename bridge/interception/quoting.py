"""A result as a message that quotes it: for agents whose stored returns can't be set."""

from __future__ import annotations

import json

from bridge.letta.gateway import Say
from bridge.turn import ToolResult


def quoted(result: ToolResult) -> Say:
    """Call and result as one JSON object, so that nothing in the result can pass for something else."""
    content = {
        "type": "tool_result",
        "tool": result.name,
        "arguments": result.arguments,
        "status": "error" if result.is_error else "success",
        "result": result.text,
    }
    return Say("user", json.dumps(content, ensure_ascii=False))
