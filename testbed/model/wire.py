"""An answer in OpenAI's JSON: one object, or the chunks of a stream. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from testbed.model.replies import ModelReply
from testbed.model.usage import completion_tokens, usage

MOST_PIECES = 200

# Where OpenAI's tokens begin and end, nearly. It matters: what Letta makes of streamed arguments depends on where
# they are cut, down to losing the whole message where a key and its quotes arrive in other pieces than these.
TOKEN = re.compile(r"(?:[^\w\r\n]|_)?[^\W\d_]+|\d{1,3}| ?(?:[^\w\s]|_)+[\r\n/]*|\s+(?!\S)|\s+")


@dataclass(frozen=True, slots=True)
class AnswerMetadata:
    """What an answer gets from outside: its id, its time, the model's name, the ids of its calls."""

    id: str
    created: int
    model: str
    call_ids: tuple[str, ...]
    prompt_tokens: int


def finish_reason(reply: ModelReply) -> str:
    """Why the model stopped."""
    return "tool_calls" if reply.calls else "stop"


def _usage(reply: ModelReply, stamp: AnswerMetadata) -> dict[str, Any]:
    calls = [(call.name, call.arguments) for call in reply.calls]
    return usage(stamp.prompt_tokens, completion_tokens(reply.content, reply.reasoning, calls))


def completion(reply: ModelReply, stamp: AnswerMetadata) -> dict[str, Any]:
    """The answer as one `chat.completion`."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": None}
    if reply.reasoning is not None:
        message["reasoning_content"] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call_id, call in zip(stamp.call_ids, reply.calls, strict=True)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(reply)}
    return {
        "id": stamp.id,
        "object": "chat.completion",
        "created": stamp.created,
        "model": stamp.model,
        "choices": [choice],
        "usage": _usage(reply, stamp),
        "system_fingerprint": "fp_scripted",
    }


def chunks(reply: ModelReply, stamp: AnswerMetadata, include_usage: bool) -> Iterator[dict[str, Any]]:
    """The same answer as the chunks of a stream."""
    for delta in deltas(reply, stamp.call_ids):
        yield _chunk(stamp, [_choice(delta, None)], include_usage)
    yield _chunk(stamp, [_choice({}, finish_reason(reply))], include_usage)
    if include_usage:
        yield _chunk(stamp, [], include_usage) | {"usage": _usage(reply, stamp)}


def _choice(delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _chunk(stamp: AnswerMetadata, choices: list[dict[str, Any]], include_usage: bool) -> dict[str, Any]:
    # With include_usage every chunk has the key, null in all but the last.
    return {
        "id": stamp.id,
        "object": "chat.completion.chunk",
        "created": stamp.created,
        "model": stamp.model,
        "choices": choices,
        "system_fingerprint": "fp_scripted",
    } | ({"usage": None} if include_usage else {})


def deltas(reply: ModelReply, call_ids: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The role, then pieces of the reasoning, the content, and each call's argument text."""
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
    """A text as the deltas of a stream: a token each, or, for a long text, several."""
    tokens = TOKEN.findall(text)
    size = -(-len(tokens) // MOST_PIECES) or 1
    return ["".join(tokens[start : start + size]) for start in range(0, len(tokens), size)]
