"""Recognises messages and conversations that were seen before, by short digests, so that no text has to be kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.turn import Message, Turn

_BLANKS = b" \t\r\n\v\f"
# How some clients put an agent's thoughts into the text that they send back.
_THOUGHTS = re.compile(r"<think>.*?</think>|<thinking>.*?</thinking>|<details\b.*?</details>", re.DOTALL)
# The newest calls of a transcript are enough to recognise its conversation.
MOST_CALLS = 8


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
