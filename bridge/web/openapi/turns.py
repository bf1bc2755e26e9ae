"""What all requests for a turn of an agent have in common: headers of request and reply, and what may go wrong."""

from __future__ import annotations

from bridge.turns.identity import KEY_HEADER, LONGEST_KEY
from bridge.web.answer import ASIDE_HEADER, LONGEST_SESSION, SESSION_HEADERS
from bridge.web.listener import FORMAT_HEADER
from bridge.web.openapi.parts import TEXT, WHOLE_NUMBER, Schema, header

# Every status that such a request may get besides 200.
TURN_ERRORS = (400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504)

_KEY = header(
    KEY_HEADER,
    "The request is answered once for this key.",
    {**TEXT, "maxLength": LONGEST_KEY},
)
_SESSION = header(
    SESSION_HEADERS[0],
    "The name of the client's conversation, so that the bridge can tell it from others of the same key.",
    {**TEXT, "maxLength": LONGEST_SESSION},
)
_ASIDE = header(
    ASIDE_HEADER,
    "`1`: the request leaves no trace in the agent, as with `:aside` after the model.",
    {"enum": ["0", "1"]},
)
TURN_PARAMETERS = [_KEY, _SESSION, _ASIDE]

TURN_HEADERS: Schema = {
    "X-Request-Id": {"description": "As in the request, or made by the bridge. The log has it.", "schema": TEXT},
    "X-Bridge-Method": {"description": "How calls of the request's tools are caught.", "schema": TEXT},
    "X-Bridge-Told": {
        "description": "How many older messages the agent was told, if any.",
        "schema": WHOLE_NUMBER,
    },
    "X-Bridge-Chat": {
        "description": "With BRIDGE_CHATS=each: how the agent's context changed for this chat, if it did.",
        "schema": {"enum": ["new", "back", "parted"]},
    },
    FORMAT_HEADER: {
        "description": "With `response_format`: whether the reply has this form.",
        "schema": {"enum": ["valid", "invalid", "unchecked"]},
    },
    "X-Bridge-Letta-Calls": {"description": "Calls to Letta until now.", "schema": WHOLE_NUMBER},
    "Server-Timing": {"description": "Where the time went until now.", "schema": TEXT},
}
