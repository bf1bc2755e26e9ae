"""Recognises messages and conversations that were seen before, by short digests, so that no text has to be kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridge.turn import Message, Turn

_BLANKS = b" \t\r\n\v\f"
# How some clients put an agent's thoughts into the text that they send back.
_THOUGHTS = re.compile(r"<think>.*?</think>|<thinking>.*?</thinking>|<details\b.*?</details>", re.DOTALL)
# The newest calls of a transcript are enough to recognise its conversation.
MOST_CALLS = 8
# So many bytes of a passage are kept to find it, and so many places with these bytes are looked at.
LONGEST_START = 12
MOST_TRIES = 20


def bare_bytes(text: str) -> bytes:
    """Returns the text without white space, because clients trim and wrap what they send back."""
    return text.encode().translate(None, _BLANKS)


def without_thoughts(text: str) -> str:
    """Returns an assistant's text without the thoughts that its client put into it."""
    return _THOUGHTS.sub("", text) if "<" in text else text


def digest_bytes(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def message_digest(message: Message) -> str:
    """Returns a digest of what was said. Two messages with the same text but of different roles have different ones."""
    text = without_thoughts(message.text) if message.role == "assistant" else message.text
    parts = [message.role, message.tool_call_id, *(call.id for call in message.tool_calls)]
    pictures = [picture.url or picture.data for picture in message.images]
    return digest_bytes("\0".join([*parts, *pictures, ""]).encode() + bare_bytes(text))


@dataclass(frozen=True, slots=True)
class Passage:
    """Recognises a text within another one, without keeping it. Lengths are in bytes without white space. `start` is
    the beginning of the text, in Latin-1.
    """

    length: int
    start: str
    digest: str

    @classmethod
    def of(cls, text: str) -> Passage:
        content = bare_bytes(text)
        return cls(len(content), content[:LONGEST_START].decode("latin-1"), digest_bytes(content))

    def bytes_in(self, content: bytes) -> int:
        """Returns how many of the bytes of another text, without white space, are this text: its length, or 0."""
        start = self.start.encode("latin-1")
        at = content.find(start) if start else -1
        for _ in range(MOST_TRIES):
            if at < 0:
                break
            if digest_bytes(content[at : at + self.length]) == self.digest:
                return self.length
            at = content.find(start, at + 1)
        return 0


def is_covered(content: bytes, passages: Iterable[Passage]) -> bool:
    """Returns whether the passages make up at least half of a text, such as one that a client joined or wrapped."""
    return bool(content) and 2 * sum(passage.bytes_in(content) for passage in passages) >= len(content)


@dataclass(frozen=True, slots=True)
class ConversationMark:
    """Recognises later requests of the conversation to which a request belonged. `digest` is of its `length` messages,
    `calls` are ids of its calls, which occur in no other conversation.
    """

    session: str
    length: int
    digest: str
    calls: tuple[str, ...]


def mark_conversation(turn: Turn, calls: Sequence[str] = ()) -> ConversationMark:
    """Returns the mark of the turn's conversation. `calls` are the ids of the calls that the turn made."""
    known = [call.id for message in turn.transcript for call in message.tool_calls]
    newest = (*known, *calls)[-MOST_CALLS:]
    return ConversationMark(turn.session, len(turn.transcript), _digest_of(turn.transcript), newest)


def goes_on(turn: Turn, mark: ConversationMark) -> bool:
    """Returns whether the turn belongs to the marked conversation, later than the mark: the client gives it the same
    name, or its transcript has one of the calls, or begins with the marked transcript and has more.
    The same transcript is not enough, because two people may begin with the same words.
    """
    if mark.session and turn.session:
        return mark.session == turn.session
    if not turn.known_calls.isdisjoint(mark.calls):
        return True
    return 0 < mark.length < len(turn.transcript) and _digest_of(turn.transcript[: mark.length]) == mark.digest


def _digest_of(messages: Sequence[Message]) -> str:
    return digest_bytes("".join(map(message_digest, messages)).encode())
