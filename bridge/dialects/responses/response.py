"""Makes the response object: what the request asked, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from bridge.dialects.responses.tools import KINDS
from bridge.errors import BridgeError
from bridge.turn import JsonObject, Used

# What the object says of fields that the request leaves out, in OpenAI's words.
_USUAL: JsonObject = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "truncation": "disabled",
    "user": None,
}

# Some clients send these as 4096.0, and no client reads them so.
_WHOLE = ("max_output_tokens", "max_tool_calls", "top_logprobs")
# The statuses of requests that fail each time.
_NEVER_RIGHT = (400, 404, 413, 422)


class ResponseObject:
    """The object of one response, in whatever state. The fields of the request stand in it as they were sent."""

    def __init__(self, body: JsonObject, model: str) -> None:
        self.id = ""
        asked = {name: body[name] if body.get(name) is not None else usual for name, usual in _USUAL.items()}
        self._created = int(time.time())
        self._asked = {
            **asked,
            **{name: int(asked[name]) for name in _WHOLE if asked[name] is not None},
            "model": model,
            "text": _shown_text(asked["text"]),
            "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
            "tools": [_shown_tool(tool) for tool in body.get("tools") or () if tool["type"] in KINDS],
        }
        if isinstance(body.get("conversation"), (str, dict)):
            given = body["conversation"]
            self._asked["conversation"] = {"id": given["id"] if isinstance(given, dict) else given}

    def in_progress(self) -> JsonObject:
        return self._in_state("in_progress", [])

    def completed(self, output: Sequence[JsonObject], used: Used) -> JsonObject:
        return {**self._in_state("completed", output, used), "completed_at": int(time.time())}

    def incomplete(self, output: Sequence[JsonObject], used: Used) -> JsonObject:
        """The response of an agent that was stopped by a limit of its own."""
        details = {"reason": "max_output_tokens"}
        return {**self._in_state("incomplete", output, used), "incomplete_details": details}

    def failed(self, output: Sequence[JsonObject], failure: BridgeError) -> JsonObject:
        return {**self._in_state("failed", output), "error": {"code": _error_code(failure), "message": failure.message}}

    def _in_state(self, status: str, output: Sequence[JsonObject], used: Used | None = None) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self._created,
            "completed_at": None,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            **self._asked,
            "output": [*output],
            "usage": None if used is None else _usage_object(used),
        }


def _shown_text(text: JsonObject) -> JsonObject:
    """Returns `text` with its format, which has a name if it has a schema."""
    form = text.get("format") or {"type": "text"}
    named = {"name": "answer", **form} if form["type"] == "json_schema" else form
    return {**{name: value for name, value in text.items() if value is not None}, "format": named}


def _error_code(failure: BridgeError) -> str:
    """Returns OpenAI's code for a failure. By it, Codex decides whether it sends the request again."""
    if failure.code == "context_length_exceeded":
        return failure.code
    if failure.status == 429:
        return "rate_limit_exceeded"
    return "invalid_prompt" if failure.status in _NEVER_RIGHT else "server_error"


def _shown_tool(tool: JsonObject) -> JsonObject:
    """Returns a tool of the request with the fields that clients expect to be there."""
    if tool["type"] != "function":
        return tool
    return {"description": None, "parameters": None, "strict": None, **tool}


def _usage_object(used: Used) -> JsonObject:
    return {
        "input_tokens": used.prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": used.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.prompt_tokens + used.completion_tokens,
    }
