"""The checker of Letta's API accepts what Letta 0.16.8 sends, and nothing that is only like it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.letta_checker import calls_of, check_answer, read_events
from tests.sse_checker import Json

HEAD: Json = {"date": "2026-11-19T09:59:48+00:00", "name": None, "otid": None, "sender_id": None, "step_id": "step-1"}
CALL: Json = {"name": "read_file", "arguments": '{"path": "a"}', "tool_call_id": "call_1"}
REQUEST: Json = {**HEAD, "id": "message-1", "message_type": "approval_request_message", "tool_call": CALL}
USAGE: Json = {"message_type": "usage_statistics", "completion_tokens": 22, "prompt_tokens": 111, "total_tokens": 133}
OPEN: Json = {"message_type": "stop_reason", "stop_reason": "requires_approval"}
SAID: Json = {**HEAD, "id": "message-2", "message_type": "assistant_message", "content": "Good."}
PING: Json = {**HEAD, "id": "ping-1", "message_type": "ping"}


def answer(**more: Any) -> Json:
    return {"messages": [{**REQUEST, "tool_calls": [CALL]}], "stop_reason": OPEN, "usage": USAGE, **more}


def stream(*events: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"


def part(name: str | None, arguments: str | None) -> Json:
    delta = {"name": name, "arguments": arguments, "tool_call_id": "call_1"}
    return {**REQUEST, "tool_call": delta, "tool_calls": delta}


def test_a_whole_answer_is_accepted() -> None:
    check_answer(answer())
    assert calls_of(answer()["messages"]) == {"call_1": ("read_file", '{"path": "a"}')}


@pytest.mark.parametrize(
    "wrong",
    [
        {"messages": [REQUEST]},
        {"messages": [{**REQUEST, "tool_calls": CALL}]},
        {"messages": [{**REQUEST, "tool_calls": [CALL], "more": 1}]},
        {"messages": [{**REQUEST, "tool_calls": [{**CALL, "type": "function"}]}]},
        {"messages": [{**REQUEST, "tool_calls": [CALL], "id": 1}]},
        {"messages": [{**REQUEST, "tool_calls": [CALL], "message_type": "ping"}]},
        {"messages": [SAID]},
        {"stop_reason": None},
        {"stop_reason": {"stop_reason": "end_turn"}},
        {"usage": {**USAGE, "steps_messages": []}},
        {"usage": {**USAGE, "total_tokens": "133"}},
    ],
    ids=str,
)
def test_a_wrong_field_is_noticed(wrong: Json) -> None:
    with pytest.raises((AssertionError, ValueError, LookupError)):
        check_answer(answer(**wrong))


def test_the_parts_of_a_call_are_joined() -> None:
    events = read_events(
        stream(PING, part("read_file", None), part(None, '{"path": '), part(None, '"a"}'), OPEN, USAGE)
    )
    assert calls_of(events) == {"call_1": ("read_file", '{"path": "a"}')}


@pytest.mark.parametrize(
    "wrong",
    [
        stream(part(*"ab"), USAGE, OPEN),
        stream(part(*"ab"), OPEN),
        stream(SAID, OPEN, USAGE),
        stream(part(*"ab"), OPEN, {**USAGE, "more": 1}),
        stream({**part(*"ab"), "date": "today"}, OPEN, USAGE),
        stream(part(*"ab"), OPEN, USAGE).removesuffix(b"data: [DONE]\n\n"),
        b"event: message\n" + stream(part(*"ab"), OPEN, USAGE),
    ],
)
def test_a_stream_in_disorder_is_noticed(wrong: bytes) -> None:
    with pytest.raises((AssertionError, ValueError)):
        read_events(wrong)
