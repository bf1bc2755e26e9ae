from __future__ import annotations

import pytest

from bridge.dialects.openai.transcript import call_fields, extract_input_aside, extract_new_input
from bridge.errors import InvalidRequest
from bridge.turn import Message, NewInput, ToolCall, ToolResult, UserMessage


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


def assistant(text: str = "", *calls: str) -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(call, "read", "{}") for call in calls))


def tool(call_id: str, text: str) -> Message:
    return Message("tool", text, tool_call_id=call_id)


def new(*messages: Message) -> NewInput:
    return extract_new_input(messages)


def test_a_first_message_opens_the_conversation() -> None:
    assert new(user("Hello")) == NewInput((UserMessage("Hello"),))


def test_only_messages_after_the_last_answer_are_new() -> None:
    found = new(user("one"), assistant("two"), user("three"), assistant("four"), user("five"), user("six"))
    assert found.user_messages == (
        UserMessage("five"),
        UserMessage("six"),
    )
    assert not found.opens_conversation


def test_instructions_count_wherever_they_are_in_the_transcript() -> None:
    found = new(system("first"), user("one"), assistant("two"), system("second"), user("three"), system("third"))
    assert found.instructions == "first\n\nsecond\n\nthird"
    assert found.user_messages == (UserMessage("three"),)


def test_instructions_may_be_missing_or_blank() -> None:
    assert new(user("one")).instructions == ""
    assert new(system(" \n"), user("one")).instructions == ""


def test_blank_texts_of_the_user_are_ignored() -> None:
    assert new(user(""), user(" \n"), user("Hello")).user_messages == (UserMessage("Hello"),)


def test_texts_are_not_changed() -> None:
    assert new(user("  Hello \n")).user_messages == (UserMessage("  Hello \n"),)


def test_results_keep_their_calls_and_a_text_after_them_is_kept() -> None:
    found = new(user("go"), assistant("", "a", "b"), tool("b", "two"), tool("a", ""), user("and now"))
    assert [(result.call_id, result.text) for result in found.results] == [("b", "two"), ("a", "")]
    assert found.user_messages == (UserMessage("and now"),)


def test_results_of_an_earlier_turn_are_not_new() -> None:
    found = new(user("go"), assistant("", "a"), tool("a", "one"), assistant("done"), user("next"))
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
        new(*messages)
    assert caught.value.param == "messages"


def test_the_ids_of_all_calls_are_known() -> None:
    about = call_fields((user("go"), assistant("", "a", "b"), tool("a", "one"), tool("c", "three")))
    assert about == {"known_calls": {"a", "b", "c"}, "closed_calls": 2, "comes_once": True}
    assert call_fields((user("go"),)) == {"known_calls": set(), "closed_calls": 0, "comes_once": False}


def test_the_form_of_the_reply_is_an_instruction() -> None:
    assert (
        extract_new_input((system("be kind"), user("one")), "Answer in JSON.").instructions
        == "be kind\n\nAnswer in JSON."
    )


# --- requests aside ---------------------------------------------------------------------------------------


def test_the_new_input_of_a_request_aside_is_that_after_the_last_answer() -> None:
    call = ToolCall("call_1", "read_file", '{"path": "a"}')
    transcript = [system("S"), user("read it"), Message("assistant", "sure", tool_calls=(call,))]
    transcript += [Message("tool", "milk", tool_call_id="call_1"), user("sum up")]
    assert extract_input_aside(transcript) == extract_new_input(transcript)
    assert extract_input_aside(transcript[:-1]).results == (
        ToolResult("call_1", "milk", name="read_file", arguments='{"path": "a"}'),
    )
    assert extract_input_aside((system("S"), user("one"), user("two"))).user_messages == (
        UserMessage("one"),
        UserMessage("two"),
    )


@pytest.mark.parametrize("last", [[], [user(" ")]])
def test_a_request_aside_that_ends_with_an_answer_asks_for_more(last: list[Message]) -> None:
    found = extract_input_aside([user("Tell me a story."), Message("assistant", "Once"), *last])
    assert found.user_messages == (UserMessage("Continue."),)


@pytest.mark.parametrize("messages", [(system("Be kind."),), (system("Be kind."), user(" "))])
def test_a_request_aside_without_a_user_message_is_refused(messages: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidRequest, match="Nothing to answer") as caught:
        extract_input_aside(messages)
    assert caught.value.param == "messages"
