"""Messages and conversations are recognised again, whatever clients do with white space and thoughts."""

from __future__ import annotations

import pytest

from bridge import fingerprints
from bridge.fingerprints import (
    LONGEST_ID,
    Passage,
    Passages,
    bare_bytes,
    digest_bytes,
    digests_of_beginnings,
    goes_on,
    mark_conversation,
    message_digest,
    spoken_digest,
    without_thoughts,
)
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


# Digests in the store, which keeps them for 30 days: other versions of the bridge made them, too.
KEPT = (
    (Message("user", " Hel lo\n"), "0f664a19a35a50c0", "3f14c21add0192ca"),
    (
        Message("assistant", "<think>a</think>Grüße, \U0001f600 <b>"),
        "60e5e6dce639fef3",
        "2635ebed6c6f1b07",
    ),
    (Message("assistant", "", tool_calls=(ToolCall("call_1", "read", "{}"),)), "95518a976696cfbf", "1537c826ccad26db"),
    (
        Message(
            "tool",
            "done",
            tool_call_id="call_1",
            images=(Image("image/png", "AAAA"), Image(url="https://a.example/cat.png")),
        ),
        "4e023487c9de5331",
        "bf132f5e82d94a28",
    ),
    (Message("user", "half \ud800"), "92b127a9ca16d9bb", "25dc8f28131982b0"),
)


def test_digests_are_those_that_the_store_keeps() -> None:
    messages = [message for message, _, _ in KEPT]
    for _ in range(2):
        assert [message_digest(message) for message in messages] == [digest for _, digest, _ in KEPT]
        assert digests_of_beginnings(messages) == [beginning for _, _, beginning in KEPT]
    assert spoken_digest(messages[1]) == Passage.of(messages[1].text).digest == "e1defeeb8c54f753"


def test_a_message_behind_others_has_another_digest_of_the_beginning() -> None:
    alone, behind = digests_of_beginnings([HELLO]), digests_of_beginnings([CALLED, HELLO])
    assert digests_of_beginnings([HELLO]) == alone
    assert alone[-1] != behind[-1] != message_digest(HELLO)


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


def test_of_a_conversation_no_long_id_of_a_call_is_kept() -> None:
    called = Message("assistant", tool_calls=(ToolCall("x" * (LONGEST_ID + 1), "read", "{}"),))
    assert mark_conversation(turn(HELLO, called, HELLO), ["call_1"]).calls == ("call_1",)


def test_the_name_that_the_client_gives_its_conversation_decides() -> None:
    mark = mark_conversation(turn(HELLO, session="ses_1"))
    assert goes_on(turn(Message("user", "Something else"), session="ses_1"), mark)
    assert not goes_on(turn(HELLO, Message("user", "Well?"), session="ses_2"), mark)
    assert goes_on(turn(HELLO, Message("user", "Well?")), mark)


def test_a_turn_without_a_transcript_belongs_to_no_conversation() -> None:
    mark = mark_conversation(Turn("Ada", turn(HELLO).new_input))
    assert not goes_on(turn(HELLO), mark)


ANSWER = "I will look at the file now, and then I will tell you what it says."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{ANSWER}\n\nDone.", "Done."),
        (f"Done. {ANSWER}", ANSWER),
        (f"<think>Well.</think>{ANSWER}", ANSWER),
        (f"Summary: {ANSWER}", ANSWER),
        ("All is done. Done.", None),
        (f"It said: {ANSWER} But I am another assistant, and I do not think that this was right.", None),
        ("", None),
    ],
)
def test_a_text_that_is_mostly_made_of_passages_is_recognised(text: str, found: str | None) -> None:
    passages = Passages(map(Passage.of, ["", "Done.", ANSWER]))
    assert passages.last_in(bare_bytes(without_thoughts(text))) == (None if found is None else Passage.of(found))


def test_a_text_that_was_cut_is_recognised_by_its_beginning() -> None:
    passages = Passages([Passage.of(ANSWER)])
    assert passages.cut_to(bare_bytes(ANSWER[:40])) == Passage.of(ANSWER)
    assert passages.cut_to(bare_bytes(ANSWER[:30] + "another and much longer end")) is None
    assert passages.cut_to(bare_bytes(ANSWER + " More.")) is None
    assert passages.cut_to(b"I") is None


@pytest.mark.parametrize("alike", [12, 1_000])
def test_passages_that_begin_alike_do_not_make_the_search_long(monkeypatch: pytest.MonkeyPatch, alike: int) -> None:
    beginning = "x" * alike
    passages = Passages([Passage.of(f"{beginning}{number} {'y' * 500}") for number in range(500)])
    hashed: list[int] = []

    def count(content: bytes) -> str:
        hashed.append(len(content))
        return digest_bytes(content)

    monkeypatch.setattr(fingerprints, "digest_bytes", count)
    content = b"x" * 50_000
    assert passages.last_in(content) is None
    assert sum(hashed) < 20 * len(content) + 200_000
    assert len(hashed) < 10_000
