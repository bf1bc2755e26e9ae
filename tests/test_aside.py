from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from threading import Event as Signal
from typing import Any

import pytest

from app import assemble_parts
from bridge.aside import PICTURES, pair_calls, put_calls_into_words
from bridge.config import Settings, read_settings
from bridge.errors import InvalidRequest, RunBrokenOff
from bridge.interception.method import GO_ON, NO_RESULT
from bridge.letta.gateway import CallResult, Results, Say
from bridge.turn import Image, Message, Stopped, Text, ToolCall, ToolSpec, Turn, TurnEvent
from tests.asked import turn_of
from tests.fakes import FEATURES, FakeGateway

READ = ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SHOT = Image("image/png", "AAAA")
ASK = Message("user", "Read a.")


def calls(*ids: str, text: str = "", name: str = "read") -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(one, name, '{"path": "a"}') for one in ids))


def returned(call_id: str, text: str = "milk", **fields: Any) -> Message:
    return Message("tool", text, tool_call_id=call_id, **fields)


# --- calls and their results --------------------------------------------------------------------------------


def test_results_follow_their_calls_in_the_order_of_the_calls() -> None:
    messages = [ASK, calls("x", "y"), returned("y", "bread"), returned("x"), calls("z"), returned("z", "tea")]
    assert pair_calls(messages, {}) == [
        *(ASK, calls("call_1", "call_2"), returned("call_1"), returned("call_2", "bread")),
        *(calls("call_3"), returned("call_3", "tea")),
    ]


def test_an_id_that_a_client_repeats_becomes_two_ids() -> None:
    messages = [calls("x", "x"), returned("x"), returned("x", "bread"), calls("x"), returned("x", "tea")]
    assert pair_calls(messages, {}) == [
        *(calls("call_1", "call_2"), returned("call_1"), returned("call_2", "bread")),
        *(calls("call_3"), returned("call_3", "tea")),
    ]


def test_a_call_that_the_client_gave_up_has_a_result_that_says_so() -> None:
    paired = pair_calls([ASK, calls("x"), Message("user", "Stop.")], {})
    assert paired == [ASK, calls("call_1"), returned("call_1", NO_RESULT, is_error=True), Message("user", "Stop.")]


def test_a_result_after_the_next_answer_does_not_belong_to_the_call() -> None:
    paired = pair_calls([calls("x"), Message("assistant", "Well."), returned("x", "late", name="read")], {})
    assert [message.role for message in paired] == ["assistant", "tool", "assistant", "user"]
    assert '"tool": "read"' in paired[3].text
    assert '"result": "late"' in paired[3].text


def test_pictures_of_results_follow_all_results_of_the_step() -> None:
    messages = [calls("x", "y"), returned("x", images=(SHOT,)), returned("y", "bread")]
    assert pair_calls(messages, {}) == [
        *(calls("call_1", "call_2"), returned("call_1"), returned("call_2", "bread")),
        Message("user", PICTURES, images=(SHOT,)),
    ]


def test_messages_that_say_nothing_are_left_out() -> None:
    assert pair_calls([Message("user", " "), Message("assistant", ""), ASK], {}) == [ASK]


def test_calls_have_the_names_that_the_model_sees() -> None:
    paired = pair_calls([calls("x"), returned("x"), calls("y", name="gone"), returned("y")], {"read": "read_1a2b"})
    assert [call.name for message in paired for call in message.tool_calls] == ["read_1a2b", "gone"]


def test_calls_that_wait_have_no_results() -> None:
    messages = [calls("x"), returned("x"), calls("y", "z")]
    paired = pair_calls(messages, {}, last_calls_wait=True)
    assert paired == [calls("call_1"), returned("call_1"), calls("call_2", "call_3")]


def test_calls_in_words_are_quoted_with_their_results() -> None:
    paired = pair_calls([ASK, calls("x", text="I look."), returned("x"), calls("y"), returned("y", "tea")], {})
    first, said, *quotes = put_calls_into_words(paired)
    assert (first, said) == (ASK, Message("assistant", "I look."))
    assert [(quote.role, json.loads(quote.text)["result"]) for quote in quotes] == [("user", "milk"), ("user", "tea")]
    assert json.loads(quotes[0].text)["arguments"] == '{"path": "a"}'


# --- the turn of a request aside ----------------------------------------------------------------------------

Run = Callable[[FakeGateway, Turn], list[TurnEvent]]


@pytest.fixture
def run(settings: Settings) -> Run:
    return lambda letta, turn: list(assemble_parts(settings, letta).conversation.events(turn, Signal()))


def letta_of(version: tuple[int, int, int], **features: bool) -> FakeGateway:
    letta = FakeGateway(replace(FEATURES, version=version, **features))
    letta.has_agent("Ada")
    return letta


def native() -> FakeGateway:
    return letta_of((0, 16, 8), client_tools=True, message_rewrite=False)


@pytest.fixture(params=["held", "imported"])
def any_letta(request: pytest.FixtureRequest) -> FakeGateway:
    return native() if request.param == "held" else letta_of((0, 16, 1))


def test_results_that_end_the_transcript_answer_held_calls(run: Run) -> None:
    letta = native()
    run(letta, turn_of(ASK, calls("x", "y"), returned("y", "bread"), returned("x"), tools=(READ,), aside=True))
    assert letta.prompts[0].history == (ASK, calls("call_1", "call_2"))
    assert letta.prompts[0].messages == (Results((CallResult("call_1", "milk"), CallResult("call_2", "bread"))),)


def test_a_user_message_may_come_beside_results_of_held_calls(run: Run) -> None:
    letta = native()
    run(letta, turn_of(ASK, calls("x"), returned("x"), Message("user", "Be quick."), tools=(READ,), aside=True))
    assert letta.prompts[0].messages == (Results((CallResult("call_1", "milk"),)), Say("user", "Be quick."))


@pytest.mark.parametrize(
    ("version", "messages"),
    [((0, 16, 1), (Say("system", GO_ON),)), ((0, 11, 7), (Say("system", GO_ON),)), ((0, 8, 17), ())],
)
def test_where_no_imported_call_is_held_the_results_end_the_context(
    run: Run, version: tuple[int, int, int], messages: tuple[Say, ...]
) -> None:
    letta = letta_of(version, approvals=version > (0, 11, 6), tool_returns=version > (0, 13, 0))
    events = run(letta, turn_of(ASK, calls("x"), returned("x"), tools=(READ,), aside=True))
    assert letta.prompts[0].history == (ASK, calls("call_1"), returned("call_1", name="read"))
    assert letta.prompts[0].messages == messages
    assert isinstance(events[-1], Stopped)


def test_an_answer_in_the_history_is_not_taken_for_the_reply(run: Run) -> None:
    letta = letta_of((0, 16, 1))
    letta.will_say("Milk.")
    events = run(
        letta, turn_of(Message("assistant", "Old."), ASK, calls("x"), returned("x"), tools=(READ,), aside=True)
    )
    assert [event.text for event in events if isinstance(event, Text)] == ["Milk."]


def test_an_answer_in_the_history_is_not_the_reply_to_a_run_that_letta_lost(run: Run, any_letta: FakeGateway) -> None:
    any_letta.will(RunBrokenOff("Lost."))
    any_letta.will_say("Milk.")
    turn = turn_of(Message("assistant", "Old."), ASK, calls("x"), returned("x"), tools=(READ,), aside=True)
    events = run(any_letta, replace(turn, id="turn-1"))
    assert [event.text for event in events if isinstance(event, Text)] == ["Milk."]


def test_a_result_without_its_call_is_not_lost(run: Run, any_letta: FakeGateway) -> None:
    run(any_letta, turn_of(ASK, calls("x"), returned("x"), returned("stray", "bread"), tools=(READ,), aside=True))
    history = any_letta.prompts[0].history
    assert history[:3] == (ASK, calls("call_1"), returned("call_1", name="read"))
    assert "bread" in history[3].text


def test_instructions_are_the_prompt_and_not_part_of_the_history(run: Run, any_letta: FakeGateway) -> None:
    turn = turn_of(Message("system", "Be kind."), ASK, Message("assistant", "Yes?"), Message("user", "Go."), aside=True)
    run(any_letta, turn)
    assert any_letta.prompts[0].history == (ASK, Message("assistant", "Yes?"))
    assert any_letta.prompts[0].memory == {}
    assert any_letta.prompts[0].texts == ["Go."]


def test_calls_in_the_history_have_the_names_of_the_stubs(run: Run) -> None:
    letta = letta_of((0, 16, 1))
    letta.has_tool("read")
    run(letta, turn_of(ASK, calls("x"), returned("x"), tools=(READ,), aside=True))
    (called,) = [call.name for message in letta.prompts[0].history for call in message.tool_calls]
    assert letta.prompts[0].tools == (called,)
    assert called.startswith("read_")


def test_without_tools_the_calls_of_the_history_are_in_words(run: Run, any_letta: FakeGateway) -> None:
    run(any_letta, turn_of(ASK, calls("x"), returned("x"), Message("user", "Make a title."), aside=True))
    first, quote = any_letta.prompts[0].history
    assert (first, quote.role) == (ASK, "user")
    assert json.loads(quote.text)["result"] == "milk"
    assert any_letta.prompts[0].texts == ["Make a title."]


def test_with_tools_in_the_text_the_calls_of_the_history_are_in_words(environment: dict[str, str]) -> None:
    environment["BRIDGE_METHOD"] = "prompt"
    letta = native()
    conversation = assemble_parts(read_settings(environment), letta).conversation
    list(conversation.events(turn_of(ASK, calls("x"), returned("x"), tools=(READ,), aside=True), Signal()))
    assert [message.role for message in letta.prompts[0].history] == ["user", "user"]


def test_a_first_request_aside_makes_no_more_calls_than_before(run: Run, any_letta: FakeGateway) -> None:
    run(any_letta, turn_of(ASK, aside=True))
    assert any_letta.prompts[0].history == ()
    assert any_letta.calls.count("make_helper") == any_letta.calls.count("delete_agent") == 1


def test_pictures_in_the_history_are_refused_where_letta_takes_none(run: Run) -> None:
    letta = letta_of((0, 7, 29))
    turn = turn_of(replace(ASK, images=(SHOT,)), Message("assistant", "A cat."), Message("user", "Sure?"), aside=True)
    with pytest.raises(InvalidRequest, match="takes no pictures"):
        run(letta, turn)
    assert letta.prompts == []
    assert letta.helpers() == []
