"""Makes the answer to a request, without sockets."""

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from testbed.model.embeddings import embeddings
from testbed.model.records import RecordedRequest
from testbed.model.refusal import Refusal, refusal_of
from testbed.model.replies import ModelReply, reply_to
from testbed.model.strictness import ModelLimits, refusal, strict_violations
from testbed.model.usage import prompt_tokens
from testbed.model.wire import AnswerMetadata, chunks, completion

JSON = "application/json"
EVENTS = "text/event-stream; charset=utf-8"

CREATED = 1_700_000_000


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer as bytes: one part, or the events of a stream, with the script's pauses and its cut."""

    status: int
    parts: tuple[bytes, ...]
    content_type: str = JSON
    delay: float = 0.0
    slow: float = 0.0
    cut: bool = False

    @property
    def streamed(self) -> bool:
        return self.content_type == EVENTS


def json_answer(value: Any, status: int = 200) -> HttpAnswer:
    """Makes an answer of one JSON value."""
    return HttpAnswer(status, (json.dumps(value).encode(),))


def refuse(record: RecordedRequest, reason: Refusal) -> HttpAnswer:
    """Makes an error answer, and records it with the request."""
    record.refusal = reason
    return json_answer(reason.body(), reason.status)


def chat_answer(record: RecordedRequest, limits: ModelLimits) -> HttpAnswer:
    """Answers a request for a chat completion."""
    body = record.body
    record.violations = strict_violations(body)
    reason = refusal(body, limits)
    if reason is not None:
        return refuse(record, reason)
    reply = reply_to(body)
    record.notes = reply.notes
    if reply.script_error is not None:
        record.refusal = Refusal(reply.script_error, code="script_error")
    if reply.failure is not None:
        dictated = refusal_of(reply.failure)
        error = json.dumps(dictated.body()).encode()
        return HttpAnswer(dictated.status, (error,), delay=reply.delay)
    return _completion_answer(body, reply, record)


def _completion_answer(body: Mapping[str, Any], reply: ModelReply, record: RecordedRequest) -> HttpAnswer:
    ids = tuple(f"call_{secrets.token_hex(12)}" for _ in reply.calls)
    metadata = AnswerMetadata(
        f"chatcmpl-{secrets.token_hex(12)}", int(time.time()), str(body["model"]), ids, prompt_tokens(body)
    )
    whole = completion(reply, metadata)
    record.reply = whole
    if body.get("stream") is not True:
        return HttpAnswer(200, (json.dumps(whole).encode(),), JSON, reply.delay, 0.0, reply.cut)
    options = body.get("stream_options") or {}
    events = tuple(_events(chunks(reply, metadata, options.get("include_usage") is True)))
    return HttpAnswer(200, events, EVENTS, reply.delay, reply.slow, reply.cut)


def _events(values: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for value in values:
        yield b"data: " + json.dumps(value).encode() + b"\n\n"
    yield b"data: [DONE]\n\n"


def embeddings_answer(record: RecordedRequest) -> HttpAnswer:
    """Answers a request for embeddings."""
    body = record.body
    if not isinstance(body, Mapping):
        return refuse(record, Refusal("We could not parse the JSON body of your request."))
    found = embeddings(body)
    return refuse(record, found) if isinstance(found, Refusal) else json_answer(found)


def models_answer(record: RecordedRequest, limits: ModelLimits, name: str | None = None) -> HttpAnswer:
    """Answers with the list of models, or with one of them."""
    listed = [{"id": one, "object": "model", "created": CREATED, "owned_by": "scripted"} for one in limits.models]
    if name is None:
        return json_answer({"object": "list", "data": listed})
    found = next((one for one in listed if one["id"] == name), None)
    if found is None:
        return refuse(record, Refusal(f"The model '{name}' does not exist", "model", "model_not_found", 404))
    return json_answer(found)
