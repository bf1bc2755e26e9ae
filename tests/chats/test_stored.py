"""The turns of a chat are read from the agent's stored messages, where nothing was noted of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from bridge.chats.lists import Chat
from bridge.chats.recognise import find_chat
from bridge.chats.stored import calls_by_message, turns_of_chat
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.fingerprints import Passage, message_digest
from bridge.heard.records import HeardTurn
from bridge.letta.gateway import StoredMessage
from bridge.turn import PLAIN_CALL_IDS, Message, ToolCall
from tests.asked import turn_of

ROOT = "message-0"
TURN = "turn-000000000000000000000001"
CALLING = "message-11111111-1111-4111-8111-111111111111"


def user(row_id: str, text: str, otid: str = "") -> StoredMessage:
    return StoredMessage(row_id, "user_message", text=text, otid=otid)


def said(row_id: str, text: str) -> StoredMessage:
    return StoredMessage(row_id, "assistant_message", text=text)


def read(
    *rows: StoredMessage, ids: tuple[str, ...] | None = None, calls: dict[str, str] | None = None
) -> list[HeardTurn]:
    by_id: defaultdict[str, list[StoredMessage]] = defaultdict(list)
    for row in rows:
        by_id[row.id].append(row)
    chat = Chat("A", message_ids=tuple(by_id) if ids is None else ids)
    return turns_of_chat(chat, ROOT, by_id, calls or {})


def told(*texts: str) -> tuple[str, ...]:
    return tuple(message_digest(Message("user", text)) for text in texts)


def test_a_turn_is_what_was_told_and_what_was_said_then() -> None:
    rows = [user("m1", "Hello", f"{TURN}-0"), said("m2", "Hi"), user("m3", "Bye"), said("m4", "See you")]
    assert read(*rows) == [
        HeardTurn("ended", told("Hello"), said=Passage.of("Hi"), chat="A", begins=ROOT, turn=TURN),
        HeardTurn("ended", told("Bye"), said=Passage.of("See you"), chat="A", begins="m2"),
    ]


def test_several_messages_of_the_user_are_of_one_turn() -> None:
    rows = [user("m1", "One", f"{TURN}-0"), user("m2", "Two", "turn-2-1"), said("m3", "Yes"), user("m4", "Three")]
    first, second = read(*rows)
    assert (first.told, first.turn, first.begins) == (told("One", "Two"), TURN, ROOT)
    assert (second.told, second.said, second.begins) == (told("Three"), None, "m3")


def test_the_rows_of_one_message_belong_together() -> None:
    rows = [user("m1", "Hello"), StoredMessage("m2", "reasoning_message", text="Hm"), said("m2", "Hi"), said("m3", "!")]
    (only,) = read(*rows, user("m4", "Bye"))[:-1]
    assert only.said == Passage.of("Hi\n\n!")
    assert only.told == told("Hello")


def test_only_messages_in_the_context_of_the_chat_count_and_in_its_order() -> None:
    rows = [user("b1", "Other"), said("m2", "Hi"), said("b2", "Answer"), user("m1", "Hello")]
    (only,) = read(*rows, ids=("m1", "m2"))
    assert (only.told, only.said, only.begins) == (told("Hello"), Passage.of("Hi"), ROOT)


def test_a_turn_ends_with_a_call_that_the_agent_waits_with_and_the_next_begins_with_its_result() -> None:
    rows = [
        user("m1", "Read it"),
        StoredMessage("m2", "approval_request_message"),
        StoredMessage("m3", "tool_return_message", text="42"),
        said("m4", "It is 42"),
        user("m5", "Again"),
        StoredMessage("m6", "approval_request_message"),
    ]
    calls, answers, again = read(*rows, calls={"m2": "call-2", "m6": "call-6", "elsewhere": "call-9"})
    assert (calls.calls, calls.results, calls.said, calls.begins) == (("call-2",), (), None, ROOT)
    assert (answers.calls, answers.results, answers.said) == ((), ("call-2",), Passage.of("It is 42"))
    assert (answers.begins, again.begins, again.calls, again.results) == ("m2", "m4", ("call-6",), ())


@pytest.mark.parametrize("named", ["m2", "m3"])
def test_a_call_with_a_return_of_its_own_keeps_it(named: str) -> None:
    rows = [
        user("m1", "Read it"),
        StoredMessage("m2", "tool_call_message"),
        StoredMessage("m3", "tool_return_message", text="42"),
        StoredMessage("m4", "tool_call_message"),
        StoredMessage("m5", "tool_return_message", text="43"),
        said("m6", "It is 42 and 43"),
    ]
    one, two, three = read(*rows, calls={named: "call-2", "m4": "call-4"})
    assert (one.begins, one.calls, one.results) == (ROOT, ("call-2",), ())
    assert (two.begins, two.calls, two.results, two.said) == ("m3", ("call-4",), ("call-2",), None)
    assert (three.begins, three.calls, three.results) == ("m5", (), ("call-4",))
    assert three.said == Passage.of("It is 42 and 43")


def test_several_calls_of_one_message_keep_all_their_returns() -> None:
    rows = [user("m1", "Read both"), StoredMessage("m2", "tool_call_message")]
    rows += [StoredMessage(row_id, "tool_return_message", text="42") for row_id in ("m3", "m4")]
    first, second = read(*rows, said("m5", "It is 42"), calls={"m2": "call-2"})
    assert (first.begins, second.begins, second.results) == (ROOT, "m4", ("call-2",))


def test_a_call_in_a_text_keeps_the_return_of_that_text() -> None:
    """The model of older agents speaks by calling send_message."""
    rows = [user("m1", "Read it"), said("m2", "<call>"), StoredMessage("m3", "tool_return_message", text="Sent.")]
    first, second = read(*rows, user("m4", "42"), said("m5", "It is 42"), calls={"m2": "call-2"})
    assert (first.begins, first.calls, second.begins) == (ROOT, ("call-2",), "m3")


def test_a_message_in_place_of_a_result_begins_a_turn_without_one() -> None:
    rows = [
        user("m1", "Read it"),
        StoredMessage("m2", "approval_request_message"),
        user("m3", "Do not"),
        said("m4", "Well"),
    ]
    first, second = read(*rows, calls={"m2": "call-2"})
    assert (first.calls, second.calls, second.results, second.told) == (("call-2",), (), (), told("Do not"))


def test_calls_of_the_agents_own_tools_end_no_turn() -> None:
    rows = [user("m1", "Find it"), StoredMessage("m2", "tool_call_message"), StoredMessage("m3", "tool_return_message")]
    (only,) = read(*rows, said("m4", "Here"))
    assert (only.calls, only.said) == ((), Passage.of("Here"))


def test_messages_that_are_not_read_belong_to_no_words() -> None:
    first, second = read(user("m3", "Bye"), said("m4", "See you"), ids=("m1", "m2", "m3", "m4"))
    assert (first.told, first.said, first.begins) == ((), None, ROOT)
    assert (second.told, second.said, second.begins) == (told("Bye"), Passage.of("See you"), "m2")


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_answer_without_words_is_missing(text: str) -> None:
    (only,) = read(user("m1", "Hello"), said("m2", text))
    assert only.said is None


@pytest.mark.parametrize(("otid", "turn_id"), [("", ""), ("7", ""), (f"{TURN}-12", TURN)])
def test_the_id_of_the_turn_is_that_with_which_its_first_message_was_sent(otid: str, turn_id: str) -> None:
    (only,) = read(user("m1", "Hello", otid), said("m2", "Hi"))
    assert only.turn == turn_id


def test_calls_are_found_by_the_messages_that_they_name() -> None:
    one, two, other = (CALL_IDS.id_in_message(CALLING, 0), CALL_IDS.id_in_message(CALLING, 1), "call_of_another_agent")
    assert calls_by_message(CALL_IDS, [one, two, other]) == {CALLING: two}
    assert calls_by_message(CALL_IDS, [one]) == {CALLING: one}
    assert calls_by_message(PLAIN_CALL_IDS, ["message-7/0", "other/0"]) == {"message-7": "message-7/0"}
    assert calls_by_message(CALL_IDS, []) == {}


# --- a transcript is recognised by them ---------------------------------------------------------------

ROWS = [
    user("m1", "What is in the file?"),
    StoredMessage(CALLING, "approval_request_message"),
    StoredMessage("m3", "tool_return_message", text="42"),
    said("m4", "It has the number 42."),
    user("m5", "And in the other one?"),
    said("m6", "There is no other file here."),
]


def found(*messages: Message) -> tuple[str, str | None] | None:
    turn = turn_of(*messages)
    calls = calls_by_message(turn.call_ids, sorted(turn.known_calls))
    chats = {"A": Chat("A", message_ids=tuple(row.id for row in ROWS)), "B": Chat("B", message_ids=("b1", "b2"))}
    rows = defaultdict(
        list, {row.id: [row] for row in [*ROWS, user("b1", "What is in the file?"), said("b2", "Text.")]}
    )
    chat = find_chat(turn, "", chats, {one.id: turns_of_chat(one, ROOT, rows, calls) for one in chats.values()}, ROOT)
    return None if chat is None else (chat.chat_id, chat.parts_after)


CALL = ToolCall(CALL_IDS.id_in_message(CALLING, 0), "read", "{}")
ASKED = [Message("user", "What is in the file?"), Message("assistant", tool_calls=(CALL,))]
ANSWERED = [Message("tool", "42", tool_call_id=CALL.id), Message("assistant", "It has the number 42.")]
SECOND = [Message("user", "And in the other one?"), Message("assistant", "There is no other file here.")]
NEXT = Message("user", "Thanks")


def test_a_transcript_goes_on_with_the_stored_turns() -> None:
    assert found(*ASKED, *ANSWERED, *SECOND, NEXT) == ("A", None)
    assert found(*ASKED[:1], Message("assistant", "Text."), NEXT) == ("B", None)


def test_a_transcript_parts_from_the_stored_turns_before_words_that_were_taken_back() -> None:
    assert found(*ASKED, *ANSWERED, NEXT) == ("A", "m4")
    assert found(*ASKED, *ANSWERED, SECOND[0]) == ("A", "m4")
    assert found(*ASKED, ANSWERED[0]) == ("A", CALLING)
    assert found(NEXT) is None


def test_a_client_that_drops_old_results_goes_on_with_the_later_answer() -> None:
    assert found(*ASKED, ANSWERED[1], *SECOND, NEXT) == ("A", None)
    assert found(*ASKED, ANSWERED[1], NEXT) == ("A", "m4")
