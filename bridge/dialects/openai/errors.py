"""Makes OpenAI's error object from a BridgeError."""

from __future__ import annotations

from bridge.errors import BridgeError
from bridge.turn import JsonObject


def error_object(failure: BridgeError) -> JsonObject:
    error = {"message": failure.message, "type": failure.type, "param": failure.param, "code": failure.code}
    return {"error": error}
