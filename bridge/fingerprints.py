"""Recognises messages and conversations that were seen before, by short digests, so that no text has to be kept."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from bridge.turn import Message, Turn

_BLANKS = b" \t\r\n\v\f"
# How some clients put an agent's thoughts into the text that they send back.
_THOUGHTS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("<details", "</details>"))
# The newest calls of a transcript are enough to recognise its conversation.
MOST_CALLS = 8
# Longer ids of calls are not kept: a client may send any, and those of the bridge have 40 characters at most.
LONGEST_ID = 200
# So many bytes of a passage are kept to find it.
LONGEST_START = 12
# A text that was cut is recognised by digests of the beginnings of the whole one, of so many bytes.
_BEGINNINGS = tuple(16 << step for step in range(16))
_BEGINNING_DIGITS = 8
# Two people hardly begin a conversation with the same line of so many bytes, and one of them with more lines.
_LEAST_OWN_WORDS = 20
# What it may cost to find passages in a text, in hashed bytes, for each of its bytes: many passages may begin alike.
_HASHED_FOR_EACH_BYTE = 16
_LEAST_HASHED = 100_000
_COST_OF_HASHING = 256
_COST_OF_COMPARING = 64


def bare_bytes(text: str) -> bytes:
    """Returns the text without white space, because clients trim and wrap what they send back."""
    return text.encode(errors="surrogatepass").translate(None, _BLANKS)


def without_thoughts(text: str) -> str:
    """Returns an assistant's text without the thoughts that its model or its client put into it."""
    if "<" not in text:
        return text
    for opening, closing in _THOUGHTS:
        text = _without_parts(text, opening, closing)
    return text


def _without_parts(text: str, opening: str, closing: str) -> str:
    kept, end = [], 0
    while (start := text.find(opening, end)) >= 0 and (close := text.find(closing, start)) >= 0:
        kept.append(text[end:start])
        end = close + len(closing)
    return "".join([*kept, text[end:]]) if end else text


def digest_bytes(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def message_digest(message: Message) -> str:
    """Returns a digest of what was said. Two messages with the same text but of different roles have different ones."""
    return message.digests.get("whole") or _compute_digests(message)["whole"]


def spoken_digest(message: Message) -> str:
    """Returns the digest of an assistant's words without its thoughts, the same as that of their `Passage`."""
    return message.digests.get("spoken") or _compute_digests(message)["spoken"]


def _compute_digests(message: Message) -> dict[str, str]:
    is_spoken = message.role == "assistant"
    content = bare_bytes(without_thoughts(message.text) if is_spoken else message.text)
    parts = [message.role, message.tool_call_id, *(call.id for call in message.tool_calls)]
    pictures = [picture.url or picture.data for picture in message.images]
    about = "\0".join([*parts, *pictures, ""]).encode(errors="surrogatepass")
    message.digests["whole"] = digest_bytes(about + content)
    if is_spoken:
        message.digests["spoken"] = digest_bytes(content)
    return message.digests


def digests_of_beginnings(messages: Iterable[Message]) -> list[str]:
    """Returns, for each message of a transcript, a digest of all messages up to it."""
    return list(accumulate(messages, _digest_up_to, initial=""))[1:]


def _digest_up_to(before: str, message: Message) -> str:
    """Returns the digest of all messages up to this one, `before` being the digest of those before it."""
    key = f"after {before}"
    found = message.digests.get(key)
    if found is None:
        found = message.digests[key] = digest_bytes((before + message_digest(message)).encode())
    return found


@dataclass(frozen=True, slots=True)
class Passage:
    """Recognises an assistant's text within another one, without keeping it. Lengths are in bytes without white space
    and thoughts. `start` is the beginning of the text, in Latin-1, `beginnings` the digests of longer ones.
    """

    length: int
    start: str
    digest: str
    beginnings: str = ""

    @classmethod
    def of(cls, text: str) -> Passage:
        content = bare_bytes(without_thoughts(text))
        start = content[:LONGEST_START].decode("latin-1")
        return cls(len(content), start, digest_bytes(content), _digests_of_beginnings(content))


def _digests_of_beginnings(content: bytes) -> str:
    lengths = [length for length in _BEGINNINGS if length <= len(content)]
    return "".join(digest_bytes(content[:length])[:_BEGINNING_DIGITS] for length in lengths)


def _longest_at(content: bytes, at: int, passages: Collection[Passage]) -> tuple[Passage | None, int]:
    """Returns the first of the passages, which begin alike, that is at this place, and what it cost to find it."""
    rest = content[at : at + max(passage.length for passage in passages)]
    beginnings = _digests_of_beginnings(rest)
    cost = 2 * len(rest) + _COST_OF_COMPARING * len(passages)
    for passage in passages:
        if passage.length <= len(rest) and beginnings.startswith(passage.beginnings):
            cost += passage.length + _COST_OF_HASHING
            if digest_bytes(rest[: passage.length]) == passage.digest:
                return passage, cost
            if cost > _HASHED_FOR_EACH_BYTE * len(content) + _LEAST_HASHED:
                break
    return None, cost


class Passages:
    """Recognises texts that are mostly made of some passages, as when a client joins or wraps an agent's answers."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._starts: defaultdict[bytes, dict[tuple[int, str], Passage]] = defaultdict(dict)
        for passage in sorted(set(passages), key=lambda one: -one.length):
            if passage.length:
                self._starts[passage.start.encode("latin-1")][passage.length, passage.digest] = passage
        self._short = sorted({len(start) for start in self._starts} - {LONGEST_START}, reverse=True)

    def last_in(self, content: bytes) -> Passage | None:
        """Returns the last passage in a text, if the passages make up at least half of it, otherwise None."""
        return next(reversed(self.all_in(content)), None)

    def all_in(self, content: bytes) -> list[Passage]:
        """Returns the passages in a text, in their order, if they make up at least half of it, otherwise none. One that
        is shorter than a start only counts at the beginning of the text and behind another passage, because its few
        bytes may be in any text.
        """
        parts, covered, at, follows = list[Passage](), 0, 0, True
        left = _HASHED_FOR_EACH_BYTE * len(content) + _LEAST_HASHED
        starts = self._starts
        while starts and at < len(content) and left > 0:
            found = None
            start = content[at : at + LONGEST_START]
            if start in starts:
                found, cost = _longest_at(content, at, starts[start].values())
                left -= cost
            if follows and not found:
                short = next((length for length in self._short if start[:length] in starts), 0)
                found = next(iter(starts[start[:short]].values())) if short else None
            follows = found is not None
            parts += [found] if found else []
            covered += found.length if found else 0
            at += found.length if found else 1
        return parts if 2 * covered >= len(content) else []

    def cut_to(self, content: bytes) -> Passage | None:
        """Returns a passage that is longer and begins with the text, as far as the digests of its beginnings tell."""
        alike = self._starts.get(content[:LONGEST_START], {}).values()
        beginnings = _digests_of_beginnings(content) if alike else ""
        longer = (passage for passage in alike if beginnings and passage.length > len(content))
        return next((passage for passage in longer if passage.beginnings.startswith(beginnings)), None)


@dataclass(frozen=True, slots=True)
class ConversationMark:
    """Recognises later requests of the conversation to which a request of `client` belonged. `digest` is of its
    `length` messages, and of the last one alone if that may grow; `calls` are ids of its calls, which occur in no other
    conversation.
    """

    client: str
    session: str
    length: int
    digest: str
    calls: tuple[str, ...]


def mark_conversation(turn: Turn, calls: Sequence[str] = ()) -> ConversationMark:
    """Returns the mark of the turn's conversation. `calls` are the ids of the calls that the turn made."""
    known = [call.id for message in turn.transcript for call in message.tool_calls]
    newest = tuple(one for one in (*known, *calls) if len(one) <= LONGEST_ID)[-MOST_CALLS:]
    digests = [message_digest(message) for message in turn.transcript]
    digest = ".".join([_joined(digests), *_parts_of_last(turn.transcript, digests)])
    return ConversationMark(turn.client, turn.session, len(digests), digest, newest)


def goes_on(turn: Turn, mark: ConversationMark) -> bool:
    """Returns whether the turn belongs to the marked conversation, later than the mark: the same client gives it the
    same name, or its transcript has one of the calls, or begins with the marked transcript and has more.
    The same transcript is not enough, because two people may begin with the same words.
    """
    if mark.client != turn.client:
        return False
    if mark.session and turn.session:
        return mark.session == turn.session
    if not turn.known_calls.isdisjoint(mark.calls):
        return True
    whole, *last = mark.digest.split(".")
    if 0 < mark.length < len(turn.transcript):
        return _digest_of(turn.transcript[: mark.length]) == whole
    return mark.length == len(turn.transcript) and _has_grown(turn.transcript, last)


def _parts_of_last(messages: Sequence[Message], digests: Sequence[str]) -> list[str]:
    """Returns by what a longer last message is recognised: a digest of the messages before it, its length in bytes and
    its digest. smolagents adds the error of a failed tool to its last message, in new lines, and sends no call.
    Returns nothing if another conversation might have the same messages before, and begin its last one so.
    """
    if not messages or messages[-1].role != "user":
        return []
    content = _as_bytes(messages[-1].text.rstrip())
    is_own = len(content) >= _LEAST_OWN_WORDS or any(message.role == "assistant" for message in messages)
    return [_joined(digests[:-1]), str(len(content)), digest_bytes(content)] if content and is_own else []


def _has_grown(messages: Sequence[Message], last: Sequence[str]) -> bool:
    """Returns whether the last message begins with the one of which `last` has the parts, and has more lines."""
    if len(last) != 3 or not last[1].isdecimal() or messages[-1].role != "user":
        return False
    before, length, digest = last[0], int(last[1]), last[2]
    content = _as_bytes(messages[-1].text)
    has_more_lines = content[length : length + 1] == b"\n"
    return has_more_lines and digest_bytes(content[:length]) == digest and _digest_of(messages[:-1]) == before


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _digest_of(messages: Sequence[Message]) -> str:
    return _joined(map(message_digest, messages))


def _joined(digests: Iterable[str]) -> str:
    return digest_bytes("".join(digests).encode())
