"""Frames of Letta's message stream and of OpenAI's, built in advance except for number and time.

The text of a delta is "<its number> <the time when it was sent, in seconds>;", by the clock that all processes share.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from bench.mock.wire import chunk

MESSAGE_ID = "message-00000000-0000-4000-8000-{:012x}"
_RUN = "run-00000000-0000-4000-8000-000000000000"
_STEP = "step-00000000-0000-4000-8000-000000000000"
_HOLE = "@hole@"


@dataclass(frozen=True, slots=True)
class FrameFormat:
    """The bytes before and after the text of each delta, and those that end the stream."""

    before: bytes
    after: bytes
    end: bytes

    def delta(self, number: int) -> bytes:
        return chunk(b"%b%d %.6f;%b" % (self.before, number, time.monotonic(), self.after))


def frame(value: Any) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def letta_message(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    message_id = MESSAGE_ID.format(number)
    head = {"id": message_id, "date": "2026-11-18T12:07:23+00:00", "name": None, "message_type": kind}
    where = {"otid": message_id, "sender_id": None, "step_id": _STEP, "is_err": None, "seq_id": None, "run_id": _RUN}
    return {**head, **where, **fields}


def letta_end(reason: str = "end_turn") -> bytes:
    usage = {"completion_tokens": 64, "prompt_tokens": 623, "total_tokens": 687, "step_count": 1, "run_ids": None}
    stopped = frame({"message_type": "stop_reason", "stop_reason": reason})
    counts = frame({"message_type": "usage_statistics", **usage, "cached_input_tokens": 0, "reasoning_tokens": 0})
    return chunk(stopped) + chunk(counts) + chunk(b"data: [DONE]\n\n")


def openai_chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench"}
    return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 623, "completion_tokens": 64, "total_tokens": 687}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "bench", "usage": usage}
    return json.dumps({**head, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def _frame_format(with_hole: Any, end: bytes) -> FrameFormat:
    before, _, after = frame(with_hole).partition(_HOLE.encode())
    return FrameFormat(before, after, end)


LETTA = _frame_format(letta_message("assistant_message", 1, content=_HOLE), letta_end())
OPENAI = _frame_format(
    openai_chunk({"role": "assistant", "content": _HOLE}),
    chunk(frame(openai_chunk({}, "stop"))) + chunk(b"data: [DONE]\n\n"),
)
