"""Adapts message requests that Letta answers itself to what older servers take."""

from __future__ import annotations

from typing import Any

from bridge.errors import InvalidRequest
from bridge.letta.capabilities import ServerFeatures
from bridge.turn import JsonObject

# Fields that only the address of a conversation knows.
_OF_CONVERSATIONS = ("agent_id", "streaming")


def adapted_body(body: JsonObject, features: ServerFeatures) -> JsonObject:
    """Returns the body without `background`, for which a server needs a Redis, and with one text in place of several
    parts where the server loses parts. Returns the same object if nothing is to be changed.
    """
    changed: dict[str, Any] = {name: value for name, value in body.items() if name != "background"}
    messages = body.get("messages")
    if isinstance(messages, list) and not features.takes_text_parts:
        changed["messages"] = [_with_one_text(message) for message in messages]
    return body if changed == body else changed


def without_conversation(body: JsonObject) -> JsonObject:
    """Returns the body for the agent's own address in place of a conversation's."""
    return {name: value for name, value in body.items() if name not in _OF_CONVERSATIONS}


def check_pictures(body: JsonObject) -> None:
    """Raises InvalidRequest if a message or a result has a picture by its address, which the Letta server fetches."""
    waiting: list[Any] = [body.get("messages"), body.get("input")]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            source = value.get("source")
            if isinstance(source, dict) and source.get("type") == "url":
                raise InvalidRequest(
                    "A picture is given by its address. Send the picture itself as base64, or let the operator set"
                    " BRIDGE_IMAGE_URLS=1: then the Letta server fetches it.",
                    param="messages",
                )
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value


def _with_one_text(message: Any) -> Any:
    parts = message.get("content") if isinstance(message, dict) else None
    if not isinstance(parts, list) or len(parts) < 2:
        return message
    if not all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in parts):
        return message
    return {**message, "content": "\n".join(part["text"] for part in parts)}
