"""Removes the JSON that Letta wraps around texts for the model. Pure.

Up to 0.7 a user's text arrives as {"type": "user_message", "message": ..., "time": ...}; agents with heartbeats get
further user messages of the types `heartbeat`, `login` and `system_alert`; a tool's result is
{"status": "OK" | "Failed", "message": ..., "time": ...} on every version.
"""

import json
from dataclasses import dataclass
from typing import Any

# The key that holds the text, by the type of the wrapping.
USER_WRAPPINGS = {"user_message": "message", "system_alert": "message", "heartbeat": "reason", "login": "last_login"}


@dataclass(frozen=True, slots=True)
class UnwrappedUser:
    """A user message: `kind` is "user" for a person's message, else the type of Letta's own message."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class UnwrappedResult:
    """A tool's result. The status is "" if Letta did not wrap it."""

    status: str
    text: str


def text_of(content: Any) -> str:
    """Returns the text of a message's content, which is a string, a list of parts, or missing."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _object(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def unwrap_user(text: str) -> UnwrappedUser:
    """Removes Letta's wrapping from a user message. Any other JSON is the user's own text."""
    wrapping = _object(text)
    kind = wrapping.get("type") if wrapping is not None else None
    if wrapping is None or not isinstance(kind, str) or kind not in USER_WRAPPINGS:
        return UnwrappedUser("user", text)
    inner = wrapping.get(USER_WRAPPINGS[kind])
    return UnwrappedUser("user" if kind == "user_message" else kind, inner if isinstance(inner, str) else "")


def unwrap_result(text: str) -> UnwrappedResult:
    """Removes Letta's wrapping from a tool message's content."""
    wrapping = _object(text)
    if wrapping is None or "status" not in wrapping or "message" not in wrapping:
        return UnwrappedResult("", text)
    message = wrapping["message"]
    inner = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    return UnwrappedResult(str(wrapping["status"]), inner)
