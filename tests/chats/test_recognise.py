"""A transcript is recognised as one that goes on with a chat, or parts from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.chats.lists import Chat
from bridge.chats.paths import paths_of_chats
from bridge.chats.recognise import FoundChat, find_chat, find_chat_of_attempt
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.fingerprints import Passage, digests_of_beginnings, message_digest
from bridge.heard.alignment import SHORTEST_OWN
from bridge.heard.records import HeardTurn, TurnKind
from bridge.turn import Image, Message, ToolCall
from tests.asked import turn_of

ROOT = "message-system"
SUMMARY = "The user asked for the tests of the parser to be mended. " * 5
LONG = "About {} the agent gives an answer that nobody else gives."


def user(text: str) -> Message:
    return Message("user", text)


def said(text: str) -> Message:
    return Message("assistant", text)


def call_id(number: int, index: int = 0) -> str:
    return CALL_IDS.id_in_message(f"message-{number:08x}-1111-4222-8333-444444444444", index)


def called(*ids: str, text: str = "") -> Message:
    return Message("assistant", text, tool_calls=tuple(ToolCall(one, "read", "{}") for one in ids))


def result(of: str, text: str = "42") -> Message:
    return Message("tool", text, tool_call_id=of)


@dataclass
class Agent:
    """An agent whose turns are noted as the bridge notes them. `contexts`: the messages of each chat."""

    noted: list[HeardTurn] = field(default_factory=list)
    contexts: dict[str, list[str]] = field(default_factory=dict)
    chats: dict[str, Chat] = field(default_factory=dict)

    def hears(self, chat: str, *transcript: Message, answer: Message | None = None, kind: TurnKind = "ended") -> str:
        """Notes a turn of the chat with this transcript and answer. Returns the turn's id."""
        context = self.contexts.setdefault(chat, [ROOT])
        self.chats.setdefault(chat, Chat(chat, used=float(len(self.chats))))
        name = f"turn-{len(self.noted):024x}"
        if kind in ("aside", "summary"):
            assert answer is not None
            self.noted.append(HeardTurn(kind, said=Passage.of(answer.text), chat=chat, turn=name))
            return name
        newer = list(transcript)
        for at, message in enumerate(transcript):
            if message.role == "assistant":
                newer = list(transcript[at + 1 :])
        self.noted.append(
            HeardTurn(
                kind,
                told=tuple(message_digest(one) for one in newer if one.role == "user"),
                results=tuple(one.tool_call_id for one in newer if one.role == "tool"),
                said=Passage.of(answer.text) if answer is not None and answer.text else None,
                calls=tuple(call.id for call in answer.tool_calls) if answer is not None else (),
                transcript=digests_of_beginnings(transcript)[-1],
                chat=chat,
                begins=context[-1],
                turn=name,
                after=self._turn_before(chat, context[-1]),
            )
        )
        context += [f"{name}/told", f"{name}/said"]
        return name

    def _turn_before(self, chat: str, begins: str) -> str:
        """Returns the id of the last turn in the chat's path, which for a new chat that parted ends with `begins`."""
        path = self.paths.get(chat, ())
        return path[-1].turn if path else begins.partition("/")[0]

    def talk(self, chat: str, *messages: Message) -> None:
        """Notes the turns of a whole talk: each assistant message is the answer to what comes before it."""
        for at, message in enumerate(messages):
            if message.role == "assistant":
                self.hears(chat, *messages[:at], answer=message)

    def fork(self, new: str, old: str, after: str | None) -> None:
        """Lets the chat `new` begin with the messages of `old` up to the one with the id `after`."""
        context = self.contexts[old]
        self.contexts[new] = list(context if after is None else context[: context.index(after) + 1])

    @property
    def paths(self) -> dict[str, list[HeardTurn]]:
        return paths_of_chats(self.noted, ROOT)

    def end_of(self, chat: str, turns: int) -> str:
        """Returns the id of the chat's last message after so many of its turns."""
        return [ROOT, *(one for one in self.contexts[chat] if one.endswith("/said"))][turns]

    def find(
        self, *transcript: Message, name: str = "", chats: Mapping[str, Chat] | None = None, **fields: Any
    ) -> FoundChat | None:
        return find_chat(turn_of(*transcript, **fields), name, self.chats if chats is None else chats, self.paths, ROOT)

    def attempt(self, turn_id: str, *, chats: Mapping[str, Chat] | None = None) -> FoundChat | None:
        turn = turn_of(user("Stop"), id=turn_id, repeated=True)
        return find_chat_of_attempt(turn, self.chats if chats is None else chats, self.paths)

    def place(self, *transcript: Message, **fields: Any) -> tuple[str, str | None] | None:
        """Returns the chat with which the transcript goes on, and after which message it parts from it."""
        found = self.find(*transcript, **fields)
        return None if found is None else (found.chat_id, found.parts_after)


ONE = [user("Please read the file a.py"), said(LONG.format("one"))]
TWO = [user("Now write a test for it"), said(LONG.format("two"))]
THREE = [user("And run it"), said(LONG.format("three"))]
NEXT = user("Thank you, what comes next?")


@pytest.fixture
def agent() -> Agent:
    """An agent with a chat "A" of three turns, and a chat "B" about other things."""
    made = Agent()
    made.talk("A", *ONE, *TWO, *THREE)
    made.talk("B", user("What is the weather like?"), said(LONG.format("weather")))
    return made


# --- it goes on ---------------------------------------------------------------------------------------


def test_a_transcript_goes_on_with_the_chat_that_has_its_answers(agent: Agent) -> None:
    found = agent.find(*ONE, *TWO, *THREE, NEXT)
    assert found == FoundChat("A", tuple(agent.paths["A"]))


def test_each_chat_is_found_whatever_the_others_said_last(agent: Agent) -> None:
    weather = [user("What is the weather like?"), said(LONG.format("weather"))]
    assert agent.place(*weather, NEXT) == ("B", None)
    assert agent.place(*ONE, *TWO, *THREE, user("What is the weather like?")) == ("A", None)


@pytest.mark.parametrize(
    "transcript",
    [
        [NEXT],
        [user("What is the weather like?")],
        [user("Hello"), said("Hello, I am another agent, and not at all the one that you mean."), NEXT],
        [user("Please read the file b.py"), said("OK"), NEXT],
        [result("call_unknown")],
    ],
)
def test_a_transcript_with_nothing_of_any_chat_begins_a_new_one(agent: Agent, transcript: list[Message]) -> None:
    assert agent.find(*transcript) is None


def test_without_chats_nothing_is_found() -> None:
    assert Agent().find(*ONE, NEXT) is None


def test_chats_of_another_client_are_not_found(agent: Agent) -> None:
    mine = {"B": agent.chats["B"]}
    assert agent.find(*ONE, NEXT, chats=mine) is None
    assert agent.find(*ONE, NEXT, chats={}) is None


def test_answers_of_other_clients_do_not_hide_those_of_the_chat() -> None:
    agent, wrapped = Agent(), f"Done: {LONG.format('dogs')}"
    agent.talk("A", user("Begin"), said(LONG.format("dogs")))
    agent.talk("theirs", user("Begin"), said(wrapped))
    assert agent.place(user("Begin"), said(wrapped), NEXT) == ("theirs", None)
    assert agent.place(said(wrapped), NEXT, chats={"A": agent.chats["A"]}) == ("A", None)


# --- equal beginnings ---------------------------------------------------------------------------------


def test_chats_with_equal_beginnings_are_told_apart_by_what_comes_then() -> None:
    agent = Agent()
    agent.talk("A", user("Hi"), said("Hello!"), user("Tell me of cats"), said("Cats purr."))
    agent.talk("B", user("Hi"), said("Hello!"), user("Tell me of dogs"), said("Dogs bark."))
    same = [user("Hi"), said("Hello!")]
    assert agent.place(*same, user("Tell me of cats"), said("Cats purr."), NEXT) == ("A", None)
    assert agent.place(*same, user("Tell me of dogs"), said("Dogs bark."), NEXT) == ("B", None)


def test_of_chats_with_equal_beginnings_the_one_that_has_nothing_else_goes_on() -> None:
    agent = Agent()
    agent.talk("A", user("Hi"), said("Hello!"))
    agent.talk("B", user("Hi"), said("Hello!"), user("Tell me of dogs"), said("Dogs bark."))
    assert agent.place(user("Hi"), said("Hello!"), NEXT) == ("A", None)


def test_of_chats_that_fit_alike_the_last_used_goes_on() -> None:
    agent = Agent()
    agent.talk("A", user("Hi"), said("Hello!"))
    agent.talk("B", user("Hi"), said("Hello!"))
    assert agent.place(user("Hi"), said("Hello!"), NEXT) == ("B", None)
    used = {**agent.chats, "A": replace(agent.chats["A"], used=99.0)}
    assert agent.place(user("Hi"), said("Hello!"), NEXT, chats=used) == ("A", None)


def test_of_chats_with_the_same_last_answer_the_one_with_more_of_the_transcript_goes_on() -> None:
    agent = Agent()
    agent.talk("A", *ONE, user("Do something forbidden"), said(LONG.format("that")))
    agent.talk("B", user("Do something forbidden"), said(LONG.format("that")))
    both = [user("Do something forbidden"), said(LONG.format("that"))]
    assert agent.place(*ONE, *both, NEXT) == ("A", None)
    assert agent.place(*both, NEXT) == ("B", None)


def test_of_chats_that_fit_alike_the_one_with_the_same_name_goes_on() -> None:
    agent = Agent()
    agent.talk("A", user("Hi"), said("Hello!"))
    agent.talk("B", user("Hi"), said("Hello!"))
    named = {"A": Chat("A", name="a"), "B": Chat("B", name="b", used=99.0)}
    assert agent.place(user("Hi"), said("Hello!"), NEXT, name="a", chats=named) == ("A", None)
    assert agent.place(user("Hi"), said("Hello!"), NEXT, name="b", chats=named) == ("B", None)
    assert agent.place(user("Hi"), said("Hello!"), NEXT, name="c", chats=named) == ("B", None)
    unnamed = {**named, "A": Chat("A")}
    assert agent.place(user("Hi"), said("Hello!"), NEXT, chats=unnamed) == ("A", None)


def test_the_same_name_does_not_outweigh_what_was_said(agent: Agent) -> None:
    named = {"A": Chat("A", name="a"), "B": Chat("B", name="b")}
    assert agent.place(*ONE, *TWO, *THREE, NEXT, name="b", chats=named) == ("A", None)
    assert agent.find(user("Hello"), name="b", chats=named) is None


def test_a_first_message_alone_never_goes_on_with_a_chat(agent: Agent) -> None:
    assert agent.find(ONE[0]) is None
    assert agent.find(ONE[0], name="a", chats={"A": Chat("A", name="a")}) is None


# --- words that were taken back -----------------------------------------------------------------------


def test_another_answer_is_asked_for_before_the_last_turn(agent: Agent) -> None:
    found = agent.find(*ONE, *TWO, THREE[0])
    assert found == FoundChat("A", tuple(agent.paths["A"][:2]), agent.end_of("A", 2))


def test_another_answer_is_asked_for_before_an_older_turn(agent: Agent) -> None:
    found = agent.find(*ONE, TWO[0])
    assert found == FoundChat("A", tuple(agent.paths["A"][:1]), agent.end_of("A", 1))


@pytest.mark.parametrize("kept", [1, 2])
def test_a_transcript_parts_before_a_message_that_was_changed(agent: Agent, kept: int) -> None:
    before = [*ONE, *TWO][: 2 * kept]
    assert agent.place(*before, user("Something else")) == ("A", agent.end_of("A", kept))


def test_a_transcript_without_its_last_turns_parts_after_what_is_left(agent: Agent) -> None:
    assert agent.place(*ONE, NEXT) == ("A", agent.end_of("A", 1))


def test_a_changed_first_message_begins_a_new_chat(agent: Agent) -> None:
    assert agent.find(user("Please read the file b.py")) is None


def test_a_picture_that_was_changed_is_a_changed_message() -> None:
    agent = Agent()
    cat, dog = (Message("user", "What is it?", images=(Image(url=f"https://x.example/{one}"),)) for one in ("c", "d"))
    agent.talk("A", *ONE, cat, said("A cat."))
    assert agent.place(*ONE, cat, said("A cat."), NEXT) == ("A", None)
    assert agent.place(*ONE, dog, NEXT) == ("A", agent.end_of("A", 1))


def test_one_of_several_messages_that_was_changed_parts_before_all_of_them() -> None:
    agent = Agent()
    agent.talk("A", *ONE, user("First"), user("Second"), said("Both."))
    assert agent.place(*ONE, user("First"), user("Other")) == ("A", agent.end_of("A", 1))
    assert agent.place(*ONE, user("First")) == ("A", agent.end_of("A", 1))
    assert agent.place(*ONE, user("First"), user("Second")) == ("A", agent.end_of("A", 1))
    assert agent.place(*ONE, user("First"), user("Second"), NEXT) == ("A", agent.end_of("A", 1))


def test_a_message_that_was_answered_earlier_may_come_again() -> None:
    agent = Agent()
    agent.talk("A", user("Go on"), said("Fine 1."), user("Go on"), said("Fine 2."))
    both = [user("Go on"), said("Fine 1."), user("Go on"), said("Fine 2.")]
    assert agent.place(*both, user("Go on")) == ("A", None)
    assert agent.place(*both[:2], user("Go on")) == ("A", agent.end_of("A", 1))


def test_the_last_answer_may_be_that_of_a_turn_before() -> None:
    agent = Agent()
    agent.talk("A", user("a"), said("OK"), user("b"), said("Yes"), user("c"), said("OK"))
    assert agent.place(user("a"), said("OK"), NEXT) == ("A", agent.end_of("A", 1))
    assert agent.place(user("a"), said("OK"), user("c")) == ("A", agent.end_of("A", 1))


# --- chats that parted --------------------------------------------------------------------------------


@pytest.fixture
def parted() -> Agent:
    """An agent with a chat "A", "B" which parted from it with a changed message, and "C" which parted from "B"."""
    agent = Agent()
    agent.talk("A", *ONE, *TWO, *THREE)
    agent.fork("B", "A", agent.end_of("A", 1))
    agent.hears("B", *ONE, user("B2"), answer=said(LONG.format("b2")))
    agent.hears("B", *ONE, user("B2"), said(LONG.format("b2")), user("B3"), answer=said(LONG.format("b3")))
    agent.fork("C", "B", agent.contexts["B"][-3])
    agent.hears("C", *ONE, user("B2"), said(LONG.format("b2")), user("B3"), answer=said(LONG.format("c3")))
    return agent


B2 = [user("B2"), said(LONG.format("b2"))]


def test_each_chat_that_parted_goes_on(parted: Agent) -> None:
    assert parted.place(*ONE, *TWO, *THREE, NEXT) == ("A", None)
    assert parted.place(*ONE, *B2, user("B3"), said(LONG.format("b3")), NEXT) == ("B", None)
    assert parted.place(*ONE, *B2, user("B3"), said(LONG.format("c3")), NEXT) == ("C", None)
    found = parted.find(*ONE, *B2, user("B3"), said(LONG.format("c3")), NEXT)
    assert found is not None
    assert [one.said for one in found.path] == [
        Passage.of(LONG.format(answer)) for answer in ("one", "b2", "c3")
    ]  # nothing of A and B


def test_a_transcript_parts_after_what_several_chats_have_in_common(parted: Agent) -> None:
    found = parted.find(*ONE, user("Something else"))
    assert found is not None
    assert found.parts_after == parted.end_of("A", 1)
    assert found.path == (parted.noted[0],)
    found = parted.find(*ONE, *B2, user("B3"))
    assert found is not None
    assert found.chat_id in ("B", "C")
    assert (found.path, found.parts_after) == ((parted.noted[0], parted.noted[3]), parted.end_of("B", 2))


# --- answers that were lost, changed or short ---------------------------------------------------------


def test_a_message_whose_answer_was_lost_is_asked_again_unless_a_later_answer_is_there(agent: Agent) -> None:
    assert agent.place(*ONE, *TWO, THREE[0], NEXT) == ("A", agent.end_of("A", 2))
    assert agent.place(*ONE, TWO[0], *THREE, NEXT) == ("A", None)
    found = agent.find(ONE[0], *TWO, *THREE, NEXT)
    assert found == FoundChat("A", tuple(agent.paths["A"]))


def test_equal_first_words_alone_show_no_chat(agent: Agent) -> None:
    assert agent.find(ONE[0], NEXT) is None


def test_a_turn_that_was_broken_off_is_made_again() -> None:
    agent = Agent()
    agent.talk("A", *ONE)
    agent.hears("A", *ONE, user("Stop"), kind="broken off")
    assert agent.place(*ONE, user("Stop"), NEXT) == ("A", agent.end_of("A", 1))
    assert agent.place(*ONE, user("Stop")) == ("A", agent.end_of("A", 1))
    assert agent.place(*ONE, NEXT) == ("A", agent.end_of("A", 1))


def test_the_answer_of_a_turn_that_was_broken_off_is_recognised() -> None:
    agent = Agent()
    agent.talk("A", *ONE)
    agent.hears("A", *ONE, user("Stop"), answer=said(LONG.format("half")), kind="broken off")
    assert agent.place(*ONE, user("Stop"), said(LONG.format("half")), NEXT) == ("A", None)


@pytest.mark.parametrize(
    "changed",
    [
        f"<think>\nIs it?\n</think>\n\n{LONG.format('three')}",
        f"<details type='reasoning'>Is it?</details>{LONG.format('three')}",
        f"\n  {LONG.format('three')}\n".replace(" ", "  "),
        f"{LONG.format('three')} (edited)",
        f"{LONG.format('two')}\n\n{LONG.format('three')}",
        LONG.format("three")[:45],
    ],
)
def test_an_answer_is_recognised_when_its_client_wraps_joins_or_cuts_it(agent: Agent, changed: str) -> None:
    assert agent.place(*ONE, *TWO, THREE[0], said(changed), NEXT) == ("A", None)


def test_answers_that_were_joined_to_one_message_stay(agent: Agent) -> None:
    joined = said("\n\n".join(one.text for one in (ONE[1], TWO[1], THREE[1])))
    assert agent.place(ONE[0], joined, NEXT) == ("A", None)


def test_a_transcript_parts_before_a_message_with_an_answer_that_the_agent_never_gave(agent: Agent) -> None:
    other = said("No, I ran it myself, and it failed.")
    assert agent.place(*ONE, *TWO, THREE[0], other, NEXT) == ("A", agent.end_of("A", 2))
    assert agent.find(ONE[0], other, NEXT) is None


def test_a_short_answer_shows_its_chat_only_with_its_question() -> None:
    agent = Agent()
    agent.talk("A", user("Is it cold?"), said("OK"))
    agent.talk("B", user("Is it warm?"), said("OK"))
    assert agent.place(user("Is it cold?"), said("OK"), NEXT) == ("A", None)
    assert agent.place(user("Is it warm?"), said("OK"), NEXT) == ("B", None)
    assert agent.find(user("Is it dark?"), said("OK"), NEXT) is None


def test_short_answers_of_other_chats_neither_move_nor_part_a_transcript() -> None:
    agent = Agent()
    for chat in ("A", "B", "C"):
        asked = [user(f"{chat}1"), said("OK"), user(f"{chat}2"), said("OK"), user(f"{chat}3"), said("Yes")]
        agent.talk(chat, *asked)
    for chat in ("A", "B", "C"):
        asked = [user(f"{chat}1"), said("OK"), user(f"{chat}2"), said("OK"), user(f"{chat}3"), said("Yes")]
        assert agent.place(*asked, user("More")) == (chat, None)
        assert agent.place(*asked[:5]) == (chat, agent.end_of(chat, 2))
        assert agent.place(*asked[:2], user("More")) == (chat, agent.end_of(chat, 1))


def test_a_short_answer_shows_its_chat_where_its_whole_transcript_was_the_same() -> None:
    agent = Agent()
    image = Message("assistant", "Look")
    agent.hears("A", image, answer=said("OK"))
    assert agent.place(image, said("OK"), NEXT) == ("A", None)
    assert agent.find(user("Something"), image, said("OK"), NEXT) is None


# --- transcripts that were cut ------------------------------------------------------------------------


@pytest.mark.parametrize("kept", range(1, 6))
def test_a_transcript_goes_on_if_only_its_newest_messages_are_left(agent: Agent, kept: int) -> None:
    assert agent.place(*[*ONE, *TWO, *THREE][-kept:], NEXT) == ("A", None)


def test_a_cut_transcript_parts_before_words_that_were_taken_back(agent: Agent) -> None:
    assert agent.place(*TWO, THREE[0]) == ("A", agent.end_of("A", 2))
    assert agent.place(*TWO, NEXT) == ("A", agent.end_of("A", 2))
    assert agent.place(TWO[1], NEXT) == ("A", agent.end_of("A", 2))


def test_a_cut_transcript_with_short_answers_goes_on_if_a_question_is_left() -> None:
    agent = Agent()
    agent.talk("A", user("a1"), said("OK"), user("a2"), said("OK"))
    agent.talk("B", user("b1"), said("OK"), user("b2"), said("OK"))
    assert agent.place(user("a2"), said("OK"), NEXT) == ("A", None)
    assert agent.find(said("OK"), NEXT) is None


# --- calls --------------------------------------------------------------------------------------------


@pytest.fixture
def calling() -> Agent:
    """An agent that made a call in two chats with equal words, got the result in one, and answered alike."""
    agent = Agent()
    agent.talk("A", user("Read it"), called(call_id(1)), result(call_id(1)), said("It is 42."))
    agent.talk("B", user("Read it"), called(call_id(2)))
    return agent


def test_calls_tell_chats_with_equal_words_apart(calling: Agent) -> None:
    asked = user("Read it")
    assert calling.place(asked, called(call_id(2)), result(call_id(2))) == ("B", None)
    assert calling.place(asked, called(call_id(1)), result(call_id(1)), said("It is 42."), NEXT) == ("A", None)
    other = "call_of_another_agent"
    assert calling.find(user("Write it"), called(other), result(other)) is None


def test_a_result_that_comes_again_parts_before_its_turn(calling: Agent) -> None:
    assert calling.place(user("Read it"), called(call_id(1)), result(call_id(1))) == ("A", calling.end_of("A", 1))


def test_a_result_that_was_taken_back_parts_before_its_turn(calling: Agent) -> None:
    assert calling.place(user("Read it"), called(call_id(1)), NEXT) == ("A", calling.end_of("A", 1))


def test_a_result_is_given_again_if_the_answer_was_lost(calling: Agent) -> None:
    lost = [user("Read it"), called(call_id(1)), result(call_id(1)), NEXT]
    assert calling.place(*lost) == ("A", calling.end_of("A", 1))


def test_a_call_whose_result_the_client_does_not_send_stays_open_in_its_chat(calling: Agent) -> None:
    assert calling.place(user("Read it"), called(call_id(2)), NEXT) == ("B", None)


def test_another_call_is_asked_for_in_a_new_chat(calling: Agent) -> None:
    assert calling.find(user("Read it")) is None


def test_calls_that_come_as_text_are_recognised(calling: Agent) -> None:
    quoted = said(f"[called read with {{}} as {call_id(2)}]")
    assert calling.place(user("Read it"), quoted, user("The result was 42")) == ("B", None)


def test_results_that_come_one_after_the_other_go_on() -> None:
    agent = Agent()
    first, second = call_id(1, 0), call_id(1, 1)
    agent.hears("A", user("Read both"), answer=called(first, second))
    assert agent.place(user("Read both"), called(first, second), result(first)) == ("A", None)
    agent.hears("A", user("Read both"), called(first, second), result(first))
    both = [user("Read both"), called(first, second), result(first), result(second)]
    assert agent.place(*both) == ("A", None)
    assert agent.place(*both[:3]) == ("A", agent.end_of("A", 1))


def test_a_call_alone_shows_its_chat_in_a_cut_transcript(calling: Agent) -> None:
    assert calling.place(called(call_id(2)), result(call_id(2))) == ("B", None)


def test_a_result_shows_its_chat_in_a_cut_transcript_with_a_short_answer(calling: Agent) -> None:
    assert calling.place(result(call_id(1)), said("It is 42."), NEXT) == ("A", None)
    assert calling.find(result(call_id(3)), said("It is 42."), NEXT) is None


# --- answers aside ------------------------------------------------------------------------------------


def test_a_summary_that_replaced_the_history_goes_on_with_its_chat(agent: Agent) -> None:
    agent.hears("A", answer=said(SUMMARY), kind="summary")
    assert agent.place(user(f"This is a summary:\n{SUMMARY}"), NEXT) == ("A", None)
    assert agent.place(said(SUMMARY), NEXT) == ("A", None)
    found = agent.find(user(f"This is a summary:\n{SUMMARY}"), NEXT)
    assert found is not None
    assert found.path == tuple(agent.paths["A"])


@pytest.mark.parametrize("kind", ["aside", "summary"])
def test_a_summary_after_which_the_chat_went_on_is_recognised(agent: Agent, kind: TurnKind) -> None:
    agent.hears("A", answer=said(SUMMARY), kind=kind)
    summed_up = user(f"Summary: {SUMMARY}")
    agent.hears("A", summed_up, user("Four"), answer=said(LONG.format("four")))
    assert agent.place(summed_up, user("Four"), said(LONG.format("four")), NEXT) == ("A", None)
    assert agent.place(summed_up, user("Another four")) == ("A", agent.end_of("A", 3))
    assert agent.place(user(f"Our talk so far: {SUMMARY}"), NEXT) == ("A", agent.end_of("A", 3))


def test_the_summary_of_another_chat_is_not_mistaken(agent: Agent) -> None:
    agent.hears("A", answer=said(SUMMARY), kind="summary")
    other = "The user asked what the weather would be like, and was told that. " * 5
    agent.hears("B", answer=said(other), kind="summary")
    assert agent.place(user(SUMMARY), NEXT) == ("A", None)
    assert agent.place(user(other), NEXT) == ("B", None)


def test_a_summary_before_the_newest_answers_does_not_outweigh_them(agent: Agent) -> None:
    agent.hears("A", answer=said(SUMMARY), kind="summary")
    weather = said(LONG.format("weather"))
    assert agent.place(user(SUMMARY), weather, user("Now again"), THREE[1], NEXT) == ("A", None)


def test_a_short_answer_aside_shows_nothing(agent: Agent) -> None:
    agent.hears("B", answer=said("Reading files"), kind="aside")
    assert agent.find(user("Reading files"), NEXT) is None
    assert agent.place(*ONE, *TWO, *THREE, user("Reading files")) == ("A", None)


def test_an_answer_aside_that_is_not_in_the_transcript_parts_nothing(agent: Agent) -> None:
    agent.hears("A", answer=said(SUMMARY), kind="aside")
    assert agent.place(*ONE, *TWO, *THREE, NEXT) == ("A", None)
    assert agent.place(*ONE, *TWO, THREE[0]) == ("A", agent.end_of("A", 2))


# --- turns that are named -----------------------------------------------------------------------------


def test_a_transcript_follows_the_newest_turn_of_a_chat(agent: Agent) -> None:
    newest = agent.paths["A"][-1].turn
    assert agent.find(NEXT, follows=newest) == FoundChat("A", tuple(agent.paths["A"]))


def test_a_transcript_that_follows_an_older_turn_parts_after_it(agent: Agent) -> None:
    first, second, _ = agent.paths["A"]
    assert agent.find(NEXT, follows=first.turn) == FoundChat("A", (first,), agent.end_of("A", 1))
    assert agent.find(NEXT, follows=second.turn) == FoundChat("A", (first, second), agent.end_of("A", 2))


def test_a_turn_that_several_chats_have_is_followed_in_the_one_in_which_it_is_the_newest() -> None:
    agent = Agent()
    first = agent.hears("A", ONE[0], answer=ONE[1])
    agent.hears("A", *ONE, TWO[0], answer=TWO[1])
    agent.fork("B", "A", agent.end_of("A", 1))
    second = agent.hears("B", *ONE, NEXT, answer=said("Fine."))
    found = agent.find(NEXT, follows=first)
    assert found is not None
    assert (found.path, found.parts_after) == ((agent.noted[0],), agent.end_of("A", 1))
    assert agent.find(NEXT, follows=second) == FoundChat("B", (agent.noted[0], agent.noted[2]))
    only_newest = {"A": [agent.noted[0]], "B": [agent.noted[0], agent.noted[2]]}
    for chats in (agent.chats, dict(reversed(agent.chats.items()))):
        paths = {chat: only_newest[chat] for chat in chats}
        assert find_chat(turn_of(NEXT, follows=first), "", chats, paths, ROOT) == FoundChat("A", (agent.noted[0],))


@pytest.mark.parametrize("kind", ["aside", "summary"])
def test_answers_aside_do_not_count_as_newer_turns(agent: Agent, kind: TurnKind) -> None:
    newest = agent.paths["A"][-1].turn
    agent.hears("A", answer=said(SUMMARY), kind=kind)
    found = agent.find(NEXT, follows=newest)
    assert found is not None
    assert (found.chat_id, found.parts_after) == ("A", None)


def test_a_broken_off_turn_counts_as_a_newer_one(agent: Agent) -> None:
    newest = agent.paths["A"][-1].turn
    agent.hears("A", *ONE, *TWO, *THREE, user("Stop"), kind="broken off")
    assert agent.place(NEXT, follows=newest) == ("A", agent.end_of("A", 3))


def test_an_unknown_turn_is_followed_nowhere_even_if_the_words_are_known(agent: Agent) -> None:
    assert agent.find(*ONE, *TWO, *THREE, NEXT, follows="turn-unknown") is None
    theirs = agent.paths["A"][-1].turn
    assert agent.find(NEXT, follows=theirs, chats={"B": agent.chats["B"]}) is None


def test_an_attempt_again_is_found_in_the_chat_of_the_attempt_before(agent: Agent) -> None:
    attempt = agent.hears("A", *ONE, *TWO, *THREE, user("Stop"), kind="broken off")
    assert agent.attempt(attempt) == FoundChat("A", tuple(agent.paths["A"]))
    assert agent.attempt(attempt, chats={"B": agent.chats["B"]}) is None
    assert agent.attempt("turn-not-noted") is None
    assert agent.attempt("") is None


def test_an_attempt_again_of_a_first_turn_is_found_although_another_chat_begins_alike() -> None:
    agent = Agent()
    attempts = [agent.hears(chat, user("Hello"), kind="broken off") for chat in ("A", "B")]
    assert [agent.attempt(one) for one in attempts] == [
        FoundChat(chat, (note,)) for chat, note in zip("AB", agent.noted, strict=True)
    ]


def test_an_attempt_again_is_not_found_in_a_chat_that_parted_later() -> None:
    agent = Agent()
    agent.talk("B", user("Something else"), said("Fine."))
    first = agent.hears("A", ONE[0], answer=ONE[1])
    agent.hears("A", *ONE, TWO[0], answer=TWO[1])
    agent.fork("B", "A", agent.end_of("A", 1))
    paths = {"B": [agent.noted[1], *agent.paths["B"]], "A": agent.paths["A"]}
    turn = turn_of(ONE[0], id=first, repeated=True)
    assert find_chat_of_attempt(turn, agent.chats, paths) == FoundChat("A", (agent.noted[1],))


# --- any chats ----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A turn in the tree of all talks. `end`: the last message in its context."""

    parent: Node | None
    new: tuple[Message, ...] = ()
    answer: Message | None = None
    note: HeardTurn | None = None
    end: str = ROOT
    summary: Message | None = None

    @property
    def line(self) -> list[Node]:
        """The turns from the first to this one, without the root of the tree."""
        return [*self.parent.line, self] if self.parent else []

    @property
    def transcript(self) -> list[Message]:
        return [message for one in self.line for message in (*one.new, one.answer) if message is not None]

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(call.id for call in self.answer.tool_calls) if self.answer else ()


class Client:
    """Leads talks with an agent, knows what goes on where, and compares that with what is found. No two of its words
    and of the agent's are equal, except for words that it says again on purpose, to get another answer.
    """

    def __init__(self) -> None:
        self.root = Node(None)
        self.nodes: list[Node] = []
        self.newest: dict[str, Node] = {}
        self.agent = Agent()
        self._count = 0

    def unique(self, begin: str) -> str:
        self._count += 1
        return f"{self._count}: {begin}"

    def step(self, action: str, number: int, form: str, reply: str, *, sums_up: bool) -> None:
        before, new = self.choose(action, number)
        transcript, fields = self.sent(before, new, form)
        chat = self.check(before, transcript, fields, number)
        self.agent.hears(chat, *transcript)
        told = self.agent.noted.pop().told
        del self.agent.contexts[chat][-2:]
        is_plain = len(told) == sum(one.role == "user" for one in new)
        node = Node(before, new, self.answer(reply if is_plain else "long"))
        self.agent.hears(chat, *transcript, answer=node.answer)
        node.note, node.end = self.agent.noted[-1], self.agent.contexts[chat][-1]
        self.newest[chat] = node
        self.nodes.append(node)
        if sums_up:
            node.summary = said(self.unique("The agent sums up what the user asked for. " * 6))
            self.agent.hears(chat, answer=node.summary, kind="summary")

    def choose(self, action: str, number: int) -> tuple[Node, tuple[Message, ...]]:
        """Returns after which turn the client says what."""
        newest = list(self.newest.values())
        if action == "begin" or not self.nodes:
            return self.root, (user(self.unique("Begin")),)
        at = newest[number % len(newest)] if action == "go on" else self.nodes[number % len(self.nodes)]
        if action == "again":
            assert at.parent is not None
            return at.parent, at.new
        results = tuple(map(result, at.calls)) if number % 3 else ()
        # With more words after results that were answered, the transcript looks as if that answer had been lost.
        were_answered = any(one.parent is at and one.new == results for one in self.nodes)
        if results and (were_answered or number % 2):
            return at, results
        return at, (*results, user(self.unique("Say")))

    def sent(self, before: Node, new: Sequence[Message], form: str) -> tuple[list[Message], dict[str, Any]]:
        """Returns the transcript as the client sends it, and other fields of the turn."""
        if form == "follows" and before.note is not None:
            return [*new], {"follows": before.note.turn}
        if form == "summed up" and before.summary is not None and not before.calls:
            return [user(f"Summary: {before.summary.text}"), *new], {}
        return [*self.old_messages(before, form), *new], {}

    def old_messages(self, before: Node, form: str) -> list[Message]:
        old, last, parent = before.transcript, before.answer, before.parent
        if last is None or parent is None:
            return old
        if form == "cut":
            return [*before.new, last]
        if form == "wrapped":
            return [*old[:-1], replace(last, text=f"<think>{self.unique('Hm')}</think>\n{last.text}")]
        if form == "joined" and parent.answer is not None and self.can_join(parent, before):
            return [*old[: -len(before.new) - 2], said(f"{parent.answer.text}\n\n{last.text}")]
        return old

    @staticmethod
    def can_join(*nodes: Node) -> bool:
        """Returns whether the turns have answers of words alone, long enough to be known without their questions."""
        return all(one.answer and len(one.answer.text) > SHORTEST_OWN + 20 and not one.calls for one in nodes)

    def check(self, before: Node, transcript: Sequence[Message], fields: Mapping[str, Any], number: int) -> str:
        """Checks what is found for a transcript that goes on after this turn. Returns the new turn's chat."""
        names = ["", "unknown", *(chat.name for chat in self.agent.chats.values())]
        found = self.agent.find(*transcript, name=names[number % len(names)], **fields)
        chat = str(len(self.newest))
        if before is self.root:
            assert found is None
        else:
            assert found is not None
            assert [one for one in found.path if one.kind == "ended"] == [one.note for one in before.line]
            going_on = [one for one, newest in self.newest.items() if newest is before]
            if going_on:
                assert [(found.chat_id, found.parts_after)] == [(one, None) for one in going_on]
                return found.chat_id
            assert found.parts_after == before.end
            assert before.end in self.agent.contexts[found.chat_id]
            self.agent.fork(chat, found.chat_id, found.parts_after)
        self.agent.chats[chat] = Chat(chat, name=f"name {number}" if number % 2 else "", used=float(number))
        return chat

    def answer(self, reply: str) -> Message:
        long = self.unique("The agent gives an answer that nobody else in the world gives.")
        calls = [call_id(self._count, index) for index in range(2)]
        if reply == "two calls":
            return called(*calls)
        if reply == "text and call":
            return called(calls[0], text=long)
        return said(long if reply == "long" else self.unique("OK"))


# A step is: what the client does, after which turn, how it sends its transcript, what the agent answers, and whether
# the client has the agent sum up the talk then.
steps = st.tuples(
    st.sampled_from(["go on", "go on", "fork", "again", "begin"]),
    st.integers(0, 60),
    st.sampled_from(["whole", "cut", "wrapped", "joined", "summed up", "follows"]),
    st.sampled_from(["long", "short", "two calls", "text and call"]),
    st.booleans(),
)


@settings(max_examples=150)
@given(st.lists(steps, min_size=2, max_size=25))
def test_every_transcript_is_found_in_its_chat_whatever_clients_go_back_to(
    chosen: list[tuple[str, int, str, str, bool]],
) -> None:
    client = Client()
    for action, number, form, reply, sums_up in chosen:
        client.step(action, number, form, reply, sums_up=sums_up)
