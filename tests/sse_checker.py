"""Reads replies and checks everything that clients rely on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.shared import ErrorObject

from tests.described import check_described

Json = dict[str, Any]

_FORMAT = re.compile("X-Bridge-Format: (valid|invalid|unchecked)")


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """A streamed reply. `message` joins its deltas; `failure` is the error that ended it, if any.
    `pings` counts the comments that only keep it open, `comments` has the others. `reply_format` is what a comment says
    of its form, None without such a comment.
    """

    chunks: tuple[Json, ...]
    message: Json
    finish_reason: str | None
    usage: Json | None
    failure: Json | None
    pings: int
    comments: tuple[str, ...]
    reply_format: str | None

    @property
    def head(self) -> Json:
        return {key: self.chunks[0][key] for key in ("id", "created", "model")}


def read_stream(body: bytes, *, include_usage: bool) -> StreamedReply:
    """Returns the reply, or raises an AssertionError that says which rule it breaks."""
    frames = list(_frames(body))
    pings = frames.count(": ping")
    comments = tuple(frame[2:] for frame in frames if frame.startswith(": ") and frame != ": ping")
    outcomes = [found[1] for found in map(_FORMAT.fullmatch, comments) if found]
    values = [frame.removeprefix("data: ") for frame in frames if not frame.startswith(": ")]
    failure = _failure_of(values[-1]) if values else None
    assert failure is not None or values[-1:] == ["[DONE]"], "a reply ends with [DONE], or with an error and no [DONE]"
    chunks = tuple(_chunk(value) for value in values[:-1])
    if chunks:
        _check_heads(chunks)
    usage = _check_usage(chunks, include_usage) if failure is None else None
    finish_reason = _check_end(chunks, failed=failure is not None)
    return StreamedReply(chunks, _joined(chunks), finish_reason, usage, failure, pings, comments, *(outcomes or [None]))


def check_completion(body: Mapping[str, Any]) -> None:
    """Checks an unstreamed reply by the openai package's type, and rules that the type does not have."""
    ChatCompletion.model_validate_json(json.dumps(body), strict=True)
    check_described("ChatCompletion", body)
    (choice,) = body["choices"]
    message = choice["message"]
    assert choice["finish_reason"] in ("stop", "length", "tool_calls", "content_filter")
    assert (choice["finish_reason"] == "tool_calls") == bool(message.get("tool_calls"))
    assert message["content"] is not None or message.get("tool_calls"), "without calls, content is a string"
    _check_sum(body["usage"])


def check_error(body: Mapping[str, Any]) -> Json:
    """Checks OpenAI's error object and returns its content."""
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    ErrorObject.model_validate_json(json.dumps(body["error"]), strict=True)
    check_described("Error", body)
    assert body["error"]["message"].strip()
    return dict(body["error"])


def _frames(body: bytes) -> Iterator[str]:
    text = body.decode("utf-8")
    assert text == "" or text.endswith("\n\n"), "the last frame is whole"
    for frame in text.split("\n\n")[:-1]:
        assert frame.startswith((": ", "data: ")), f"not a frame: {frame!r}"
        assert "\n" not in frame, f"not a frame: {frame!r}"
        yield frame


def _failure_of(value: str) -> Json | None:
    return check_error(json.loads(value)) if value.startswith('{"error"') else None


def _chunk(value: str) -> Json:
    ChatCompletionChunk.model_validate_json(value, strict=True)
    chunk: Json = json.loads(value)
    check_described("ChatChunk", chunk)
    assert chunk["object"] == "chat.completion.chunk"
    return chunk


def _check_heads(chunks: tuple[Json, ...]) -> None:
    heads = {(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}
    assert len(heads) == 1, "all chunks have one id, one time and one model"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert [index for index, delta in enumerate(deltas) if "role" in delta] == [0], "the role comes first, and once"
    assert deltas[0]["role"] == "assistant"
    for delta in deltas:
        assert all(delta[key] != "" for key in ("content", "reasoning_content") if key in delta), "no empty deltas"


def _check_usage(chunks: tuple[Json, ...], wanted: bool) -> Json | None:
    """Checks that usage comes once, in the last chunk, which has no choice, and only if requested."""
    with_usage = [index for index, chunk in enumerate(chunks) if chunk.get("usage") is not None]
    without_choice = [index for index, chunk in enumerate(chunks) if not chunk["choices"]]
    assert with_usage == without_choice == ([len(chunks) - 1] if wanted else [])
    if not wanted:
        return None
    usage: Json = chunks[-1]["usage"]
    _check_sum(usage)
    return usage


def _check_sum(usage: Mapping[str, int]) -> None:
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def _check_end(chunks: tuple[Json, ...], *, failed: bool) -> str | None:
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks if chunk["choices"]]
    if failed:
        assert all(reason is None for reason in reasons), "a failed reply has no finish_reason"
        return None
    assert all(reason is None for reason in reasons[:-1]), "finish_reason comes once, in the last choice"
    assert reasons[-1] in ("stop", "length", "tool_calls", "content_filter")
    calls = any("tool_calls" in chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"])
    assert (reasons[-1] == "tool_calls") == calls
    return str(reasons[-1])


def _joined(chunks: tuple[Json, ...]) -> Json:
    """Joins the deltas, as a client does."""
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    calls: dict[int, Json] = {}
    for piece in (piece for delta in deltas for piece in delta.get("tool_calls", ())):
        _add_call(calls, piece)
    assert list(calls) == list(range(len(calls))), "calls are numbered from 0 without a gap"
    message: Json = {
        "content": "".join(delta.get("content") or "" for delta in deltas),
        "reasoning_content": "".join(delta.get("reasoning_content") or "" for delta in deltas),
        "tool_calls": list(calls.values()),
    }
    return message


def _add_call(calls: dict[int, Json], piece: Json) -> None:
    function = piece["function"]
    if piece["index"] not in calls:
        assert piece["type"] == "function"
        assert piece["id"]
        assert function["name"]
        calls[piece["index"]] = {
            "id": piece["id"],
            "type": "function",
            "function": {"name": function["name"], "arguments": function["arguments"]},
        }
        return
    assert set(piece) == {"index", "function"}, "id, type and name come with the first piece only"
    assert set(function) == {"arguments"}
    calls[piece["index"]]["function"]["arguments"] += function["arguments"]
