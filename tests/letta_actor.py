"""A client of Letta's own API for tests. It checks every reply to a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.letta_replies import LettaReply, read_stream, read_whole
from tests.sse_checker import Json

READ: Json = {
    "name": "read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


class LettaClient:
    """Sends requests to Letta's own API of one agent."""

    def __init__(self, client: FlaskClient, agent_id: str, headers: Mapping[str, str] | None = None) -> None:
        self.client = client
        self._headers = dict(headers or {})
        self.agent_id = agent_id

    def send(self, path: str, body: Any = None, verb: str = "POST", **headers: str) -> TestResponse:
        sent = {} if body is None else {"json": body}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.client.open(
            f"/letta/v1/{path}", method=verb, headers={**self._headers, **named}, buffered=True, **sent
        )

    def get(self, path: str, **headers: str) -> Any:
        answer = self.send(path, verb="GET", **headers)
        assert answer.status_code == 200, answer.text
        return answer.json

    def say(self, *messages: Json | str, path: str = "", **fields: Any) -> LettaReply:
        """Sends messages, of which a text is a user's, and expects an answer."""
        answer = self.try_to_say(*messages, path=path, **fields)
        assert answer.status_code == 200, answer.text
        is_stream = answer.mimetype == "text/event-stream"
        return read_stream(answer.data) if is_stream else read_whole(answer.json or {})

    def try_to_say(self, *messages: Json | str, path: str = "", **fields: Any) -> TestResponse:
        sent = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
        body = {"messages": sent, "client_tools": [READ], **fields}
        return self.send(path or f"agents/{self.agent_id}/messages", body)


def answer(call_id: str, text: str = "one", **fields: Any) -> Json:
    """Returns the message that answers one call."""
    given = {"type": "tool", "tool_call_id": call_id, "tool_return": text, "status": "success", **fields}
    return {"type": "approval", "approvals": [given]}


def denial(call_id: str, reason: str = "stale") -> Json:
    given = {"type": "approval", "tool_call_id": call_id, "approve": False, "reason": reason}
    return {"type": "approval", "approvals": [given]}
