"""Clients that lead a conversation in any way, with few different words, so that equal ones stand everywhere."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event as Signal

from hypothesis import given, settings
from hypothesis import strategies as st

from app import assemble_parts
from bridge.config import read_settings
from bridge.errors import LettaUnreachable
from bridge.turn import Message, MethodChosen, Text
from tests.asked import turn_of
from tests.fakes import FakeGateway

WORDS = ["continue", "Done.", "yes", "Fix the tests", "a.py: one", "a.py: two"]
ANSWERS = ["Done.", "Ok.", "I fixed all the tests, and they pass.", "continue", "I fixed all the tests, but one fails."]

words = st.sampled_from(WORDS)
answers = st.sampled_from(ANSWERS)
users = st.lists(words, min_size=1, max_size=2)
chats = st.integers(0, 2)
places = st.integers(0, 12)


class Clients:
    """Clients with three chats with one agent, each with a transcript of its own."""

    def __init__(self, folder: str) -> None:
        self._letta = FakeGateway()
        self._letta.has_agent("Ada")
        self._folder = Path(folder)
        variables = {"LETTA_BASE_URL": "http://letta", "BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_DATA_DIR": folder}
        self._settings = read_settings(variables)
        self._conversation = assemble_parts(self._settings, self._letta).conversation
        self.chats: list[list[Message]] = [[], [], []]

    def ask(self, chat: int, said: Sequence[str], answer: str) -> tuple[list[str], int]:
        """Returns what the agent's model was shown, and how many older messages the bridge told."""
        talk = self.chats[chat]
        talk += [Message("user", text) for text in said]
        self._letta.will_say(answer)
        before = len(self._letta.prompts)
        events = list(self._conversation.events(turn_of(*talk), Signal()))
        (chosen,) = [event for event in events if isinstance(event, MethodChosen)]
        talk.append(Message("assistant", answer))
        return [text for prompt in self._letta.prompts[before:] for text in prompt.texts], chosen.told

    def fail(self, chat: int, said: Sequence[str], shown: str, *, taken: bool) -> None:
        """Asks in vain. The agent may have taken the messages and begun to answer; the client may keep what it said."""
        talk = self.chats[chat]
        talk += [Message("user", text) for text in said]
        if taken:
            self._letta.will(Text(shown), LettaUnreachable("gone"))
        else:
            self._letta.fails(LettaUnreachable("gone"), at="send_messages")
        with contextlib.suppress(LettaUnreachable):
            list(self._conversation.events(turn_of(*talk), Signal()))
        self._letta.recovers()
        if taken and len(shown) % 2:
            talk.append(Message("assistant", shown))

    def forget(self) -> None:
        for path in self._folder.glob("shared.db*"):
            path.unlink()
        self._conversation = assemble_parts(self._settings, self._letta).conversation

    def change(self, kind: str, chat: int, at: int, text: str) -> None:
        talk = self.chats[chat]
        at = min(at, len(talk))
        if kind == "insert":
            talk[at:at] = [Message("user", text), Message("assistant", "Of course.")]
        elif kind == "fork":
            self.chats[chat] = list(self.chats[(chat + 1) % 3][:at])
        elif at < len(talk) and kind == "drop":
            del talk[at]
        elif at < len(talk) and kind == "edit":
            talk[at] = Message(talk[at].role, text)
        elif at < len(talk):
            talk.append(talk.pop(at))

    @property
    def heard(self) -> str:
        """All that the agent's context has."""
        return "\n".join(row.text for row in self._letta.newest_messages(self._letta.agents()[0].id, 10_000))


@contextlib.contextmanager
def clients() -> Iterator[Clients]:
    with tempfile.TemporaryDirectory() as folder:
        yield Clients(folder)


@settings(max_examples=60)
@given(st.lists(st.tuples(chats, users, answers), min_size=2, max_size=12), st.sets(st.integers(1, 12), max_size=2))
def test_chats_that_only_grow_are_told_nothing_of_what_stands_in_them(
    turns: list[tuple[int, list[str], str]], losses: set[int]
) -> None:
    with clients() as asked:
        for number, (chat, said, answer) in enumerate(turns):
            if number in losses:
                asked.forget()
            if not asked.chats[chat]:  # chats with equal beginnings may be one, of which the client drops answers
                said = [f"I am client {chat}.", *said]
            assert asked.ask(chat, said, answer) == (said, 0)


asking = st.tuples(st.just("ask"), chats, users, answers)
failing = st.tuples(st.sampled_from(["fail", "fail after"]), chats, users, answers)
changing = st.tuples(st.sampled_from(["insert", "fork", "drop", "edit", "move"]), chats, places, words)
losing = st.tuples(st.just("forget"), chats, users, answers)


@settings(max_examples=120)
@given(st.lists(asking | failing | changing | losing, min_size=3, max_size=14))
def test_the_agent_gets_each_of_the_users_words_whatever_the_client_does(
    steps: list[tuple[str, int, list[str] | int | str, str]],
) -> None:
    with clients() as asked:
        for kind, chat, what, text in steps:
            if kind == "forget":
                asked.forget()
            elif isinstance(what, int):
                asked.change(kind, chat, what, text)
            elif kind == "ask":
                shown, _ = asked.ask(chat, list(what), text)
                assert shown[-1] == what[-1]
                assert all(one.text in asked.heard for one in asked.chats[chat] if one.role == "user")
            else:
                asked.fail(chat, list(what), text, taken=kind == "fail after")
