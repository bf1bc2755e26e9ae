"""The OpenAPI description of the API, as /openapi.json and the page /docs show it."""

from __future__ import annotations

from bridge import __version__
from bridge.web.openapi import chat, health, letta, responses
from bridge.web.openapi.errors import ERROR, error_responses
from bridge.web.openapi.parts import Schema

_ABOUT = "An OpenAI-compatible API in front of Letta agents. The client's tools appear to the agent as its own."
_LETTA = (
    " Below `/letta` is Letta's own API. The bridge answers the requests that are listed here; what else a key may ask"
    " is passed on to Letta."
)


def describe_api(prefix: str, *, letta_api: bool, needs_key: bool) -> Schema:
    """Returns the description. `prefix` is the path under which a proxy serves the bridge, "" without one."""
    rooms = [chat, responses, *([letta] if letta_api else []), health]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Letta tool bridge",
            "version": __version__,
            "description": _ABOUT + (_LETTA if letta_api else ""),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": prefix or "/"}],
        "security": [{"key": []}] if needs_key else [],
        "paths": {path: item for room in rooms for path, item in room.PATHS.items()},
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": "A key that the operator gave you."}
            },
            "schemas": {"Error": ERROR, **{name: one for room in rooms for name, one in room.SCHEMAS.items()}},
            "responses": {**error_responses(), **(letta.RESPONSES if letta_api else {})},
        },
    }
