"""A client of the service for tests. It checks every reply that it gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flask.testing import FlaskClient
from openai.types import Model
from werkzeug.datastructures import Headers
from werkzeug.test import TestResponse

from tests.sse_checker import Json, StreamedReply, check_completion, check_error, read_stream

SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply of the chat route: a completion, a stream or an error, with the same fields."""

    status: int
    headers: Headers
    message: Json
    finish_reason: str | None
    usage: Json | None
    error: Json | None
    streamed: StreamedReply | None = None
    model: str = ""

    @property
    def text(self) -> str:
        return str(self.message["content"])

    @property
    def reasoning(self) -> str:
        return str(self.message.get("reasoning_content", ""))

    @property
    def comparable(self) -> tuple[str, str, list[Json], str | None, Json | None]:
        """The parts that must be the same for a streamed and an unstreamed reply."""
        calls = list(self.message.get("tool_calls", ()))
        return self.message["content"] or "", self.reasoning, calls, self.finish_reason, self.usage


class Chat:
    """Sends requests to the chat route and the models route."""

    def __init__(self, client: FlaskClient) -> None:
        self._client = client

    def ask(
        self,
        text: str = "Hello",
        *,
        model: str = "Ada",
        stream: bool = False,
        usage: bool = True,
        messages: list[Json] | None = None,
        system: str | None = None,
        headers: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> ChatReply:
        """Sends one request. `system` and `text` make the transcript, unless `messages` is given."""
        if messages is None:
            messages = [{"role": "system", "content": system}] if system is not None else []
            messages = [*messages, {"role": "user", "content": text}]
        body: Json = {"model": model, "messages": messages, "stream": stream, **fields}
        if stream and usage:
            body["stream_options"] = {"include_usage": True}
        return self.post(body, headers=headers)

    def post(self, body: Any, *, headers: Mapping[str, str] | None = None) -> ChatReply:
        """Sends a body as it is: bytes, or a value as JSON."""
        sent = {"data": body if isinstance(body, bytes) else json.dumps(body), "content_type": "application/json"}
        response = self._client.post("/v1/chat/completions", headers=dict(headers or {}), buffered=True, **sent)
        for name, value in SECURITY_HEADERS.items():
            assert response.headers[name] == value
        if response.mimetype == "text/event-stream":
            return _stream(response, body)
        if response.status_code == 200:
            return _whole(response)
        return ChatReply(response.status_code, response.headers, {}, None, None, check_error(response.json or {}))

    def models(self, *, headers: Mapping[str, str] | None = None) -> list[str]:
        response = self._client.get("/v1/models", headers=dict(headers or {}))
        assert response.status_code == 200
        listed: Json = response.json or {}
        assert listed["object"] == "list"
        for model in listed["data"]:
            Model.model_validate(model, strict=True)
        return [model["id"] for model in listed["data"]]


def _stream(response: TestResponse, body: Any) -> ChatReply:
    assert response.status_code == 200
    wanted = bool((body.get("stream_options") or {}).get("include_usage"))
    streamed = read_stream(response.data, include_usage=wanted)
    return ChatReply(
        200,
        response.headers,
        streamed.message,
        streamed.finish_reason,
        streamed.usage,
        streamed.failure,
        streamed,
        streamed.chunks[0]["model"] if streamed.chunks else "",
    )


def _whole(response: TestResponse) -> ChatReply:
    body: Json = response.json or {}
    check_completion(body)
    (choice,) = body["choices"]
    return ChatReply(
        200, response.headers, choice["message"], choice["finish_reason"], body["usage"], None, None, body["model"]
    )
