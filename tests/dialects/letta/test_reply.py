"""Whatever an agent does, its reply has the types of letta-client, and says the same with and without a stream."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bridge.dialects.letta.answers import GivenAnswer
from bridge.dialects.letta.reply import LettaReply
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import ModelFailed
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    Used,
)
from tests import letta_replies

IDS = ["message-12345678-1234-1234-1234-12345678900" + digit for digit in "1234"]
ONE, TWO = (ToolCall(CALL_IDS.id_in_message(IDS[3], index), "read", f'{{"n": {index}}}') for index in (0, 1))
OWN = AgentCall(IDS[2], "call_own", "memory_insert", "{}")
EVENTS = st.lists(
    st.builds(Text, st.text(min_size=1, max_size=5), st.sampled_from(IDS[:2]))
    | st.builds(Reasoning, st.text(min_size=1, max_size=5), st.sampled_from(IDS[:2]))
    | st.just(RunStarted("run-1"))
    | st.just(Used(1, 2))
    | st.just(OWN)
    | st.just(AgentReturn(IDS[3], "call_own", "done")),
    max_size=8,
)
ANSWERS = [GivenAnswer(ToolResult(ONE.id, "text", is_error=True), stdout=["text"], stderr=[])]


def stream(events: Sequence[AgentEvent], *, by_token: bool = False) -> letta_replies.LettaReply:
    reply = LettaReply(ANSWERS, by_token=by_token)
    frames = [frame for event in events for frame in reply.frames(event)]
    return letta_replies.read_stream(b"".join([*frames, *reply.end()]))


def whole(events: Sequence[AgentEvent]) -> letta_replies.LettaReply:
    return letta_replies.read_whole(dict(LettaReply(ANSWERS, by_token=False).body(events)))


@given(EVENTS, st.sampled_from([(), (ONE,), (ONE, TWO)]))
def test_a_stream_says_what_the_whole_reply_says(events: list[AgentEvent], calls: tuple[ToolCall, ...]) -> None:
    done = [*events, *calls, Stopped("end_turn")]
    assert stream(done).comparable == whole(done).comparable
    by_token, expected = stream(done, by_token=True), whole(done)
    assert (by_token.stop_reason, by_token.calls) == (expected.stop_reason, expected.calls)
    assert by_token.text == expected.text


@given(EVENTS)
def test_a_stream_that_fails_says_so_at_its_end(events: list[AgentEvent]) -> None:
    reply = LettaReply((), by_token=False)
    frames = [frame for event in events for frame in reply.frames(event)]
    read = letta_replies.read_stream(b"".join([*frames, *reply.failure(ModelFailed("It failed."))]))
    assert (read.stop_reason, read.failure and read.failure["message"]) == ("error", "It failed.")


def test_calls_of_one_step_are_in_one_request() -> None:
    (request,) = whole([ONE, TWO, Stopped("end_turn")]).of("approval_request_message")
    assert request["id"] == IDS[3]
    assert request["tool_call"] == request["tool_calls"][0]
    assert [call["tool_call_id"] for call in request["tool_calls"]] == [ONE.id, TWO.id]
    assert whole([ONE, Stopped("tool_rule")]).stop_reason == "requires_approval"


def test_each_call_of_a_stream_by_token_has_its_arguments_once() -> None:
    pieces = [piece["tool_call"] for piece in stream([ONE, TWO], by_token=True).pieces]
    assert [(piece["name"], piece["arguments"]) for piece in pieces] == [
        ("read", None),
        (None, '{"n": 0}'),
        ("read", None),
        (None, '{"n": 1}'),
    ]


def test_answers_are_repeated_first_but_not_in_a_stream_by_token() -> None:
    events = [Text("Hi", IDS[0]), Stopped("end_turn")]
    for reply in (whole(events), stream(events)):
        echo = reply.messages[0]
        assert (echo["tool_return"], echo["status"], echo["tool_call_id"]) == ("text", "error", ONE.id)
        assert echo["stdout"] == ["text"]
        assert [one["tool_call_id"] for one in echo["tool_returns"]] == [ONE.id]
    assert [message["message_type"] for message in stream(events, by_token=True).messages] == ["assistant_message"]


def test_a_stream_begins_with_a_sign_of_life() -> None:
    assert stream([Text("Hi", IDS[0])]).pings == 1


def test_only_the_agents_own_calls_have_returns() -> None:
    stub_return = AgentReturn(IDS[0], "call_of_stub", "placeholder")
    kinds = [
        message["message_type"] for message in stream([stub_return, OWN, AgentReturn(IDS[1], "call_own", "x")]).messages
    ]
    assert kinds == ["tool_return_message", "tool_call_message", "tool_return_message"]


def test_a_good_end_is_told_as_one_that_letta_code_knows() -> None:
    for reason in ("end_turn", "tool_rule", "no_tool_call", "requires_approval"):
        assert whole([Text("Hi", IDS[0]), Stopped(reason)]).stop_reason == "end_turn"
    cut = LettaReply((), by_token=False).body([Text("Hi", IDS[0]), Stopped("max_steps")])
    assert cut["stop_reason"]["stop_reason"] == "max_steps"
