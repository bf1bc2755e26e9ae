"""Frames are the chunks of the reply, encoded: those whose surroundings are known no less than the first ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import sse
from bridge.dialects.chat_completions.frames import Frames
from bridge.dialects.chat_completions.reply import Envelope, Reply
from bridge.turn import AgentEvent, Reasoning, RunStarted, Stopped, Text, ToolCall, Used

ENVELOPE = Envelope('an "agent"\n')
TEXTS = st.text() | st.sampled_from(['"', "\\", "\u2028", "\x00\x1f", "\ud800", "\U0001f600", "data: x\n\n"])
EVENTS = st.lists(
    st.builds(Text, TEXTS)
    | st.builds(Reasoning, TEXTS)
    | st.builds(ToolCall, st.just("call_1"), st.just("read"), st.just("{}"))
    | st.just(RunStarted("run-1"))
    | st.just(Used(1, 2))
    | st.just(Stopped("max_steps")),
    max_size=8,
)


@given(EVENTS, st.booleans())
def test_frames_are_the_chunks_encoded(events: list[AgentEvent], include_usage: bool) -> None:
    reply = Reply(ENVELOPE, include_usage=include_usage)
    frames = Frames(Reply(ENVELOPE, include_usage=include_usage))
    expected = [sse.encode(chunk) for event in events for chunk in reply.chunks(event)]
    assert [frame for event in events for frame in frames.of(event)] == expected
    assert list(frames.end()) == [*(sse.encode(chunk) for chunk in reply.end()), sse.END]


@pytest.mark.parametrize("kind", [Text, Reasoning])
def test_the_role_is_in_the_first_frame_alone(kind: type[Text] | type[Reasoning]) -> None:
    frames = Frames(Reply(ENVELOPE, include_usage=False))
    sent = [frame for text in ("a", "b", "c") for frame in frames.of(kind(text))]
    assert [b'"role":"assistant"' in frame for frame in sent] == [True, False, False]
