"""Frames are the encoded chunks of the reply, also when the bytes around a text were encoded earlier."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import sse
from bridge.dialects.chat_completions.chunks import Chunks
from bridge.dialects.chat_completions.reply import ChatReply
from bridge.errors import ModelFailed
from bridge.turn import AgentEvent, Reasoning, RunStarted, Stopped, Text, ToolCall, Used

MODEL = 'an "agent"\n'
SEPARATORS = "\x85\u2028\u2029"
TEXTS = st.text() | st.sampled_from(['"', "\\", SEPARATORS, "\x00\x1f", "\ud800", "\U0001f600", "data: x\n\n"])
ITEMS = st.sampled_from(["message-1", "message-2"])
EVENTS = st.lists(
    st.builds(Text, TEXTS, ITEMS)
    | st.builds(Reasoning, TEXTS, ITEMS)
    | st.builds(ToolCall, st.just("call_1"), st.just("read"), st.just("{}"))
    | st.just(RunStarted("run-1"))
    | st.just(Used(1, 2))
    | st.just(Stopped("max_steps")),
    max_size=8,
)


@given(EVENTS, st.booleans())
def test_frames_are_the_encoded_chunks(events: list[AgentEvent], include_usage: bool) -> None:
    reply = ChatReply(MODEL, include_usage=include_usage)
    chunks = Chunks(reply._envelope, include_usage=include_usage)
    expected = [sse.encode_event(chunk) for event in events for chunk in chunks.chunks_for(event)]
    assert [frame for event in events for frame in reply.frames(event)] == expected
    assert reply.end() == [*(sse.encode_event(chunk) for chunk in chunks.last_chunks()), sse.END]


@pytest.mark.parametrize("kind", [Text, Reasoning])
def test_the_role_is_in_the_first_frame_only(kind: type[Text] | type[Reasoning]) -> None:
    reply = ChatReply(MODEL)
    sent = [frame for text in ("a", "b", "c") for frame in reply.frames(kind(text))]
    assert [b'"role":"assistant"' in frame for frame in sent] == [True, False, False]


def test_a_failure_in_a_stream_is_an_error_object_without_an_end() -> None:
    (frame,) = ChatReply(MODEL).failure(ModelFailed("It failed."))
    error = json.loads(frame.removeprefix(b"data: "))["error"]
    assert (error["message"], error["code"]) == ("It failed.", "model_failed")
