"""Writes a reply as OpenAI's JSON: one object, or the chunks of a stream. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.model.replies import ModelReply
from testbed.model.usage import completion_tokens, usage

MOST_PIECES = 200

# Cuts nearly where OpenAI's tokens end. This matters: how Letta reads streamed arguments depends on the cuts. It even
# loses the whole message if a key and its quotes arrive in other pieces than these.
TOKEN = re.compile(r"(?:[^\w\r\n]|_)?[^\W\d_]+|\d{1,3}| ?(?:[^\w\s]|_)+[\r\n/]*|\s+(?!\S)|\s+")


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """The parts of an answer that do not come from the reply: its id, time, model, ids of calls, prompt size."""

    id: str
    created: int
    model: str
    call_ids: tuple[str, ...]
    prompt_tokens: int


def finish_reason(reply: ModelReply) -> str:
    """Returns why the model stopped."""
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: ModelReply, metadata: AnswerMetadata) -> dict[str, Any]:
    calls = [(call.name, call.arguments) for call in reply.calls]
    return usage(metadata.prompt_tokens, completion_tokens(reply.content, reply.reasoning, calls))


def completion(reply: ModelReply, metadata: AnswerMetadata) -> dict[str, Any]:
    """Writes the reply as one `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": None}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call_id, call in zip(metadata.call_ids, reply.calls, strict=True)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(reply)}
    return {
        "id": metadata.id,
        "object": "chat.completion",
        "created": metadata.created,
        "model": metadata.model,
        "choices": [choice],
        "usage": _usage(reply, metadata),
        "system_fingerprint": "fp_scripted",
    }


def chunks(reply: ModelReply, metadata: AnswerMetadata, include_usage: bool) -> Iterator[dict[str, Any]]:
    """Writes the same reply as the chunks of a stream."""
    for delta in deltas(reply, metadata.call_ids):
        yield _chunk(metadata, [_choice(delta, None)], include_usage)
    yield _chunk(metadata, [_choice({}, finish_reason(reply))], include_usage)
    if include_usage:
        yield _chunk(metadata, [], include_usage) | {"usage": _usage(reply, metadata)}


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _chunk(metadata: AnswerMetadata, choices: list[dict[str, Any]], include_usage: bool) -> dict[str, Any]:
    # With include_usage every chunk has the key, null in all but the last.
    return {
        "id": metadata.id,
        "object": "chat.completion.chunk",
        "created": metadata.created,
        "model": metadata.model,
        "choices": choices,
        "system_fingerprint": "fp_scripted",
    } | ({"usage": None} if include_usage else {})


def deltas(reply: ModelReply, call_ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yields the role, then pieces of the reasoning, of the content, and of each call's argument text."""
    yield {"role": "assistant", "content": None if reply.content is None else "", "refusal": None}
    for piece in pieces(reply.reasoning or ""):
        yield {"reasoning_content": piece}
    for piece in pieces(reply.content or ""):
        yield {"content": piece}
    for index, (call_id, call) in enumerate(zip(call_ids, reply.calls, strict=True)):
        function = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        for piece in pieces(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def pieces(text: str) -> list[str]:
    """Cuts a text into the deltas of a stream, each of one token, or of several if the text is long."""
    tokens = TOKEN.findall(text)
    size = -(-len(tokens) // MOST_PIECES) or 1
    return ["".join(tokens[start : start + size]) for start in range(0, len(tokens), size)]
