"""Whatever an agent does, its stream keeps OpenAI's order, and says the same as the whole response."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import errors
from bridge.dialects.responses.reply import ResponsesReply
from bridge.dialects.responses.response import ResponseObject
from bridge.dialects.responses.tools import OfferedTools, parse_offered_tools
from bridge.turn import AgentEvent, JsonObject, Reasoning, RunStarted, Stopped, Text, ToolCall, Used
from tests.responses_checker import check_response, read_response_stream

TOOLS: list[Any] = [
    {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}},
    {"type": "custom", "name": "patch"},
    {"type": "namespace", "name": "a", "description": "", "tools": [{"type": "function", "name": "read"}]},
]
MESSAGES = st.sampled_from(["message-12345678-1234-1234-1234-12345678900" + digit for digit in "12"] + ["", "odd"])
CALLS = [ToolCall(f"call_{number}", name, '{"input": "x"}') for number, name in enumerate(("read", "patch", "a__read"))]
EVENTS = st.lists(
    st.builds(Text, st.text(max_size=5), MESSAGES)
    | st.builds(Reasoning, st.text(max_size=5), MESSAGES)
    | st.just(RunStarted("run-1"))
    | st.just(Used(1, 2))
    | st.just(Stopped("max_steps")),
    max_size=8,
)


def reply_to(finished: list[JsonObject] | None = None) -> ResponsesReply:
    body = {"model": "Ada", "input": "Hi", "tools": TOOLS}
    tools: OfferedTools = parse_offered_tools(body, (), 512)
    made = ResponsesReply(ResponseObject(body, "Ada"), tools, (finished if finished is not None else []).append)
    made.begin("turn-" + "ab" * 12)
    return made


@given(EVENTS, st.booleans(), st.integers(0, 3), st.sets(st.integers(0, 8)))
def test_a_stream_keeps_the_order_and_has_the_items_of_the_whole_response(
    events: list[AgentEvent], calls_first: bool, calls: int, pings: set[int]
) -> None:
    events = [*CALLS[:calls], *events] if calls_first else [*events, *CALLS[:calls]]
    finished: list[JsonObject] = []
    reply, frames = reply_to(finished), list[bytes]()
    for place, event in enumerate(events):
        frames += reply.ping() if place in pings else []
        frames += reply.frames(event)
    streamed = read_response_stream(b"".join([*frames, *reply.end()])).response
    whole = reply_to().body(events)
    check_response(whole)
    assert [{**item, "id": ""} for item in streamed["output"]] == [{**item, "id": ""} for item in whole["output"]]
    assert (streamed["status"], streamed["usage"]) == (whole["status"], whole["usage"])
    assert finished == [streamed]


@given(EVENTS)
def test_a_stream_that_fails_says_so_at_its_end_and_is_not_kept(events: list[AgentEvent]) -> None:
    finished: list[JsonObject] = []
    reply = reply_to(finished)
    frames = [frame for event in events for frame in reply.frames(event)]
    streamed = read_response_stream(b"".join([*frames, *reply.failure(errors.ModelFailed("It failed."))]))
    assert streamed.response["error"] == {"code": "server_error", "message": "It failed."}
    assert finished == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (errors.ModelFailed("It failed."), "server_error"),
        (errors.RequestConflict("Wait."), "server_error"),
        (errors.Busy("Wait."), "rate_limit_exceeded"),
        (errors.ContextOverflow("It is full."), "context_length_exceeded"),
        (errors.InvalidRequest("No.", code="previous_response_not_newest"), "invalid_prompt"),
        (errors.UnknownModel("No agent."), "invalid_prompt"),
    ],
)
def test_a_failure_says_whether_the_same_request_may_succeed_later(failure: errors.BridgeError, code: str) -> None:
    streamed = read_response_stream(b"".join(reply_to().failure(failure)))
    assert streamed.response["error"] == {"code": code, "message": failure.message}


def test_events_come_in_the_order_that_programs_expect() -> None:
    """The order that eleven clients accepted; helpers of OpenAI's packages and the AI SDK need each of the events."""
    reply = reply_to()
    events: list[AgentEvent] = [Reasoning("hm", "m"), Text("Let ", "m"), Text("me.", "m"), CALLS[0]]
    frames = [*(frame for event in events for frame in reply.frames(event)), *reply.end()]
    found = [event["type"].removeprefix("response.") for event in read_response_stream(b"".join(frames)).events]
    assert found == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]


def test_a_ping_before_the_first_event_begins_the_stream() -> None:
    reply = reply_to()
    streamed = read_response_stream(b"".join([*reply.ping(), *reply.ping(), *reply.end()]))
    assert streamed.pings == 1


def test_a_tool_is_called_by_the_words_of_its_client() -> None:
    items = reply_to().body(CALLS)["output"]
    named = [(item["type"], item["name"], item.get("namespace")) for item in items]
    assert named == [
        ("function_call", "read", None),
        ("custom_tool_call", "patch", None),
        ("function_call", "read", "a"),
    ]
    assert [item.get("input", item.get("arguments")) for item in items] == ['{"input": "x"}', "x", '{"input": "x"}']
