from __future__ import annotations

import pytest

from bridge.dialects.openai.transcript import what_is_new
from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, ToolCall, Turn, UserMessage


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str = "", *calls: str) -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(call, "read", "{}") for call in calls))


def tool(call_id: str, text: str) -> Message:
    return Message("tool", text, tool_call_id=call_id)


def news(*messages: Message) -> NewInput:
    return what_is_new(Turn("Ada", messages))


def test_a_first_message_opens_the_conversation() -> None:
    assert news(user("Hello")) == NewInput(said=(UserMessage("Hello"),), opens_conversation=True)


def test_only_what_stands_after_the_last_answer_is_new() -> None:
    found = news(user("one"), assistant("two"), user("three"), assistant("four"), user("five"), user("six"))
    assert found.said == (
        UserMessage("five"),
        UserMessage("six"),
    )
    assert not found.opens_conversation


def test_instructions_are_those_of_the_whole_transcript_wherever_they_stand() -> None:
    found = news(system("first"), user("one"), assistant("two"), system("second"), user("three"), system("third"))
    assert found.instructions == "first\n\nsecond\n\nthird"
    assert found.said == (UserMessage("three"),)


def test_there_may_be_no_instructions_or_blank_ones() -> None:
    assert news(user("one")).instructions == ""
    assert news(system(" \n"), user("one")).instructions == ""


def test_blank_texts_of_the_user_are_not_told_to_the_agent() -> None:
    assert news(user(""), user(" \n"), user("Hello")).said == (UserMessage("Hello"),)


def test_texts_are_told_as_they_stand() -> None:
    assert news(user("  Hello \n")).said == (UserMessage("  Hello \n"),)


def test_results_keep_their_calls_and_a_text_behind_them_stays() -> None:
    found = news(user("go"), assistant("", "a", "b"), tool("b", "two"), tool("a", ""), user("and now"))
    assert [(result.call_id, result.text) for result in found.results] == [("b", "two"), ("a", "")]
    assert found.said == (UserMessage("and now"),)


def test_results_of_an_earlier_turn_are_not_new() -> None:
    found = news(user("go"), assistant("", "a"), tool("a", "one"), assistant("done"), user("next"))
    assert found.results == ()


@pytest.mark.parametrize(
    "messages",
    [
        (assistant("Hello"),),
        (user("one"), assistant("two")),
        (system("be kind"),),
        (user(" "),),
        (user("one"), assistant("two"), user("")),
        (user("one"), assistant("two"), system("late")),
    ],
)
def test_a_transcript_with_nothing_new_is_refused(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest, match="Nothing new to answer") as caught:
        news(*messages)
    assert caught.value.param == "messages"
