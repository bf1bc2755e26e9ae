"""A client of the Responses API for tests. It checks every reply that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from werkzeug.datastructures import Headers

from tests.responses_checker import StreamedResponse, check_response, read_response_stream
from tests.sse_checker import Json, check_error


@dataclass(frozen=True, slots=True)
class ResponseReply:
    """A reply of the route: a response, whole or streamed, or an error, with the same fields."""

    status: int
    headers: Headers
    response: Json
    error: Json | None
    streamed: StreamedResponse | None = None

    @property
    def output(self) -> list[Json]:
        output: list[Json] = self.response["output"]
        return output

    @property
    def text(self) -> str:
        messages = [item for item in self.output if item["type"] == "message"]
        return "".join(part["text"] for item in messages for part in item["content"])

    @property
    def comparable(self) -> tuple[list[Json], str, Json | None]:
        """The parts that must be the same for a streamed and an unstreamed response, but for random ids."""
        items = [{**item, "id": item["id"].partition("_")[0]} for item in self.output]
        return items, self.response["status"], self.response["usage"]


class ResponsesClient:
    """Sends requests to the Responses API."""

    def __init__(self, client: FlaskClient) -> None:
        self._client = client

    def ask(
        self,
        given: str | list[Json] = "Hello",
        *,
        model: str = "Ada",
        stream: bool = False,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ResponseReply:
        return self.post({"model": model, "input": given, "stream": stream, **fields}, headers=headers)

    def post(self, body: Any, *, headers: Mapping[str, str] | None = None) -> ResponseReply:
        """Sends a body as it is: bytes, or a value as JSON."""
        sent = {"data": body} if isinstance(body, bytes) else {"json": body}
        reply = self._client.post("/v1/responses", headers=dict(headers or {}), buffered=True, **sent)
        if reply.status_code != 200:
            return ResponseReply(reply.status_code, reply.headers, {}, check_error(reply.json or {}))
        if reply.mimetype == "text/event-stream":
            streamed = read_response_stream(reply.data)
            response = streamed.response
            return ResponseReply(200, reply.headers, response, response["error"], streamed)
        check_response(reply.json or {})
        return ResponseReply(200, reply.headers, reply.json or {}, None)
