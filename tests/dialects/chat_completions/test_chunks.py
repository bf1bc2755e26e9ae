from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from bridge import sse
from bridge.dialects.chat_completions.chunks import Chunks, Envelope, completion_from_events
from bridge.dialects.openai.models import model_list, model_object
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    JsonObject,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    Used,
)
from tests.sse_checker import StreamedReply, check_completion, read_stream

END: tuple[AgentEvent, ...] = (Used(100, 10), Stopped("end_turn"))
CALLS: tuple[AgentEvent, ...] = (ToolCall("call_1", "read", '{"path":"a"}'), ToolCall("call_2", "list", "{}"))

RUNS: dict[str, tuple[AgentEvent, ...]] = {
    "text": (Text("Hello"), *END),
    "text in pieces": (Text("Hel"), Text("lo"), Text(" \U0001f600"), *END),
    "reasoning, then text": (Reasoning("hm"), Reasoning(", yes"), Text("Hello"), *END),
    "text, then reasoning": (Text("Hello"), Reasoning("hm"), Text("!"), *END),
    "reasoning alone": (Reasoning("hm"), *END),
    "nothing": END,
    "nothing at all": (),
    "calls": (*CALLS, *END),
    "text, then calls": (Text("Let me see."), *CALLS, *END),
    "reasoning, then calls": (Reasoning("hm"), *CALLS, Stopped("requires_approval")),
    "tools of the server": (
        RunStarted("run-1"),
        AgentCall("message-1", "call_1", "memory_insert", "{}"),
        AgentReturn("message-2", "call_1", "None"),
        Text("Noted."),
        *END,
    ),
    "several messages": (
        Reasoning("hm", "message-1"),
        Text("One", "message-1"),
        Text(".", "message-1"),
        Reasoning("so", "message-2"),
        Text("Two.", "message-2"),
        *END,
    ),
    "too many steps": (Text("Hello"), Stopped("max_steps")),
}


def streamed(events: Sequence[AgentEvent], *, include_usage: bool = True) -> StreamedReply:
    made = Chunks(Envelope("Ada"), include_usage=include_usage)
    chunks = [*(chunk for event in events for chunk in made.chunks_for(event)), *made.last_chunks()]
    return read_stream(b"".join(map(sse.encode_event, chunks)) + sse.END, include_usage=include_usage)


def whole(events: Sequence[AgentEvent]) -> JsonObject:
    made = completion_from_events(events, Envelope("Ada"))
    check_completion(made)
    return made


@pytest.mark.parametrize("run", RUNS)
def test_the_stream_and_the_completion_say_the_same(run: str) -> None:
    stream = streamed(RUNS[run])
    made = whole(RUNS[run])
    (choice,) = made["choices"]
    message = choice["message"]
    assert stream.message == {
        "content": message["content"] or "",
        "reasoning_content": message.get("reasoning_content", ""),
        "tool_calls": message.get("tool_calls", []),
    }
    assert (stream.finish_reason, stream.usage) == (choice["finish_reason"], made["usage"])


@pytest.mark.parametrize("run", RUNS)
def test_a_stream_has_no_usage_unless_asked_for(run: str) -> None:
    assert streamed(RUNS[run], include_usage=False).usage is None


def test_messages_of_the_agent_are_separated_by_an_empty_line() -> None:
    assert streamed(RUNS["several messages"]).message == {
        "content": "One.\n\nTwo.",
        "reasoning_content": "hm\n\nso",
        "tool_calls": [],
    }


def test_the_role_is_sent_once() -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed(RUNS["text in pieces"]).chunks[:-1]]
    assert deltas == [
        {"role": "assistant", "content": "Hel"},
        {"content": "lo"},
        {"content": " \U0001f600"},
        {},
    ]


def test_an_empty_answer_still_has_its_role_and_its_end() -> None:
    (chunk,) = streamed(RUNS["nothing at all"], include_usage=False).chunks
    assert (chunk["choices"][0]["delta"], chunk["choices"][0]["finish_reason"]) == ({"role": "assistant"}, "stop")


def test_calls_are_numbered_and_each_is_whole_in_one_delta() -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed(RUNS["calls"]).chunks[:2]]
    assert deltas == [
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": '{"path":"a"}'},
                }
            ],
        },
        {
            "tool_calls": [
                {"index": 1, "id": "call_2", "type": "function", "function": {"name": "list", "arguments": "{}"}}
            ]
        },
    ]


@pytest.mark.parametrize(
    ("run", "content"), [("calls", None), ("text, then calls", "Let me see."), ("nothing", ""), ("reasoning alone", "")]
)
def test_content_is_null_only_when_there_are_calls_instead(run: str, content: str | None) -> None:
    message = whole(RUNS[run])["choices"][0]["message"]
    assert message["content"] == content
    assert message["refusal"] is None


@pytest.mark.parametrize("run", RUNS)
def test_the_finish_reason_is_tool_calls_only_if_there_are_calls(run: str) -> None:
    calls = any(isinstance(event, ToolCall) for event in RUNS[run])
    assert (streamed(RUNS[run]).finish_reason == "tool_calls") == calls


def test_reasoning_never_gets_into_the_content() -> None:
    message = whole(RUNS["reasoning, then text"])["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Hello", "hm, yes")


def test_the_agents_own_tools_are_not_shown_to_the_client() -> None:
    stream = streamed(RUNS["tools of the server"])
    assert "memory_insert" not in json.dumps(stream.chunks)
    assert stream.message == {"content": "Noted.", "reasoning_content": "", "tool_calls": []}


def test_usage_is_what_the_server_counted() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    assert whole(RUNS["text"])["usage"] == usage
    assert streamed(RUNS["text"]).usage == usage


def test_a_reply_of_which_no_usage_is_known_has_a_usage_of_zero() -> None:
    assert whole(())["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def test_every_reply_has_its_own_id() -> None:
    ids = {Envelope("Ada").id for _ in range(100)}
    assert len(ids) == 100
    assert all(one.startswith("chatcmpl-") for one in ids)


# --- models -----------------------------------------------------------------------------------------------


def test_agents_are_listed_as_models() -> None:
    assert model_list([("Ada", 5)]) == {"object": "list", "data": [model_object("Ada", 5)]}
    assert model_object("Ada", 5) == {"id": "Ada", "object": "model", "created": 5, "owned_by": "letta"}
