"""Messages and conversations are recognised again, whatever clients do with white space and thoughts."""

from __future__ import annotations

import pytest

from bridge.fingerprints import goes_on, mark_conversation, message_digest
from bridge.turn import Image, Message, ToolCall, Turn
from tests.asked import turn_of

HELLO = Message("user", "Hello")
CALLED = Message("assistant", "", tool_calls=(ToolCall("call_1", "read", "{}"),))


def turn(*messages: Message, session: str = "") -> Turn:
    return turn_of(*messages, session=session)


@pytest.mark.parametrize(
    ("sent", "echoed"),
    [
        (HELLO, Message("user", "\n Hel lo \r\n")),
        (Message("assistant", "Yes."), Message("assistant", "<think>Is\nit?</think>\n\nYes.")),
        (Message("assistant", "Yes."), Message("assistant", '<details type="reasoning">Hm</details>Yes.')),
        (CALLED, Message("assistant", "", tool_calls=(ToolCall("call_1", "read", '{ "path": null }'),))),
    ],
)
def test_a_message_is_recognised_when_its_client_sends_it_changed_in_form(sent: Message, echoed: Message) -> None:
    assert message_digest(sent) == message_digest(echoed)


@pytest.mark.parametrize(
    "other",
    [
        Message("user", "Hello!"),
        Message("assistant", "Hello"),
        Message("user", "<think>no</think>Hello"),
        Message("user", "Hello", images=(Image(url="https://a.example/cat.png"),)),
        Message("tool", "Hello", tool_call_id="call_1"),
    ],
)
def test_a_message_with_other_words_or_of_another_role_is_another(other: Message) -> None:
    assert message_digest(HELLO) != message_digest(other)


def test_a_longer_transcript_with_the_same_beginning_goes_on() -> None:
    mark = mark_conversation(turn(HELLO))
    assert goes_on(turn(HELLO, Message("user", "Well?")), mark)
    assert not goes_on(turn(Message("user", "Hi"), Message("user", "Well?")), mark)


def test_the_same_first_words_may_be_of_somebody_else() -> None:
    assert not goes_on(turn(HELLO), mark_conversation(turn(HELLO)))


def test_a_transcript_with_one_of_the_calls_goes_on_whatever_its_client_changed() -> None:
    mark = mark_conversation(turn(HELLO), ["call_1"])
    result = Message("tool", "12", tool_call_id="call_1")
    assert goes_on(turn(Message("user", "A summary of before."), CALLED, result), mark)


def test_the_name_that_the_client_gives_its_conversation_decides() -> None:
    mark = mark_conversation(turn(HELLO, session="ses_1"))
    assert goes_on(turn(Message("user", "Something else"), session="ses_1"), mark)
    assert not goes_on(turn(HELLO, Message("user", "Well?"), session="ses_2"), mark)
    assert goes_on(turn(HELLO, Message("user", "Well?")), mark)


def test_a_turn_without_a_transcript_belongs_to_no_conversation() -> None:
    mark = mark_conversation(Turn("Ada", turn(HELLO).new_input))
    assert not goes_on(turn(HELLO), mark)
