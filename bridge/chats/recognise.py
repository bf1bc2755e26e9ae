"""Finds the chat that a client's transcript goes on with, and where the two part. Pure.

The agent's answers tell: its calls have ids that occur once, and its words are mostly its own. A user's message that a
chat has and the transcript does not was taken back, with all that came after it: the transcript parts before it. The
same holds for a last message that comes again: the client wants another answer to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from bridge.chats.lists import Chat
from bridge.chats.paths import parted_places
from bridge.fingerprints import Passages, digests_of_beginnings, message_digest, spoken_digest
from bridge.heard.alignment import SHORTEST_OWN, SHORTEST_SUMMARY, find_said, quoted_ids, spoken_bytes
from bridge.heard.records import HeardTurn
from bridge.turn import Message, Turn


@dataclass(frozen=True, slots=True)
class FoundChat:
    """The chat, and the turns of its path with which the transcript goes on. `parts_after`: the id of the last message
    that both have, None if the transcript goes on with the whole chat.
    """

    chat_id: str
    path: tuple[HeardTurn, ...]
    parts_after: str | None = None


@dataclass(frozen=True, slots=True)
class _Fit:
    """How well a chat fits. `place`: of the last message of the transcript that it surely has. `matched`: how many of
    its turns the transcript has.
    """

    found: FoundChat
    place: int
    matched: int


def find_chat(
    turn: Turn, name: str, chats: Mapping[str, Chat], paths: Mapping[str, Sequence[HeardTurn]]
) -> FoundChat | None:
    """Returns the chat of the turn, None if it begins a new one. `chats` are those that the turn may go on with, and
    `name` the digest of the client's name for its chat, "" if it has none. Of chats that fit alike, it is one of the
    same name, then the one with more of the transcript, then the last used.
    """
    if turn.follows:
        return _chat_of_turn_before(turn, chats, paths)
    transcript = _Transcript(turn.transcript, [path for chat, path in paths.items() if chat in chats])
    fits = [
        (fit, chats[chat])
        for chat, path in paths.items()
        if chat in chats and (fit := transcript.fit(chat, path)) is not None
    ]
    if not fits:
        return None

    def quality(one: tuple[_Fit, Chat]) -> tuple[int, bool, bool, int, float]:
        fit, chat = one
        return (fit.place, fit.found.parts_after is None, chat.name == name, fit.matched, chat.used)

    return max(fits, key=quality)[0].found


def find_chat_of_attempt(
    turn: Turn, chats: Mapping[str, Chat], paths: Mapping[str, Sequence[HeardTurn]]
) -> FoundChat | None:
    """Returns the chat in which an earlier attempt at this turn was made, None if none is noted."""
    places = parted_places({chat: path for chat, path in paths.items() if chat in chats}).get(turn.id, ())
    own = ((chat, place) for chat, place in places if paths[chat][place].chat == chat)
    return next((FoundChat(chat, tuple(paths[chat][: place + 1])) for chat, place in own), None)


def _chat_of_turn_before(
    turn: Turn, chats: Mapping[str, Chat], paths: Mapping[str, Sequence[HeardTurn]]
) -> FoundChat | None:
    """Returns the chat with the turn that this one names as the one before."""
    places = parted_places({chat: path for chat, path in paths.items() if chat in chats})
    found = []
    for chat, place in places.get(turn.follows, ()):
        path, later = paths[chat][: place + 1], paths[chat][place + 1 :]
        parts_after = next((one.begins for one in later if one.kind in ("ended", "broken off")), None)
        found.append((parts_after is None, chats[chat].used, FoundChat(chat, tuple(path), parts_after)))
    return max(found, key=lambda one: one[:2])[2] if found else None


class _Transcript:
    """A client's transcript, by its messages' digests. `paths`: all turns that it may have."""

    def __init__(self, messages: Sequence[Message], paths: Iterable[Sequence[HeardTurn]]) -> None:
        self._messages = messages
        self._told: defaultdict[str, list[int]] = defaultdict(list)
        self._said: defaultdict[str, list[int]] = defaultdict(list)
        self._calls: dict[str, int] = {}
        self._results: dict[str, int] = {}
        for place, message in enumerate(messages):
            if message.role == "user":
                self._told[message_digest(message)].append(place)
            elif message.role == "assistant":
                self._said[spoken_digest(message)].append(place)
                self._calls |= dict.fromkeys((call.id for call in message.tool_calls), place)
            elif message.role == "tool":
                self._results[message.tool_call_id] = place
        self._lengths = dict(zip(digests_of_beginnings(messages), count(1), strict=False))
        self._last_user = max((at for at, one in enumerate(messages) if one.role != "assistant"), default=-1)
        turns = {id(turn): turn for path in paths for turn in path}.values()
        self._find_changed_answers(turns)
        self._summaries = self._places_of_summaries(turns)

    def fit(self, chat: str, path: Sequence[HeardTurn]) -> _Fit | None:
        """Returns how a chat with this path fits, None if the transcript has nothing of it."""
        place, matched, last = -1, 0, -1
        for at, turn in enumerate(path):
            answer = self._place_of_answer(turn, place)
            if answer is not None:
                place, matched, last = answer, matched + 1, at
        for at, turn in enumerate(path[last + 1 :], start=last + 1):
            if turn.kind in ("aside", "summary"):
                continue
            kept = self._place_of_question(turn, place)
            if kept is None:
                return _Fit(FoundChat(chat, tuple(path[:at]), turn.begins), place, matched) if matched else None
            place, matched = kept, matched + 1
        return _Fit(FoundChat(chat, tuple(path)), place, matched) if matched else None

    def _place_of_answer(self, turn: HeardTurn, after: int) -> int | None:
        """Returns the place of the turn's answer behind the place `after`, None if it is not there."""
        if turn.kind in ("aside", "summary"):
            place = self._summaries.get(turn.said.digest, -1) if turn.said else -1
            return place if place > after else None
        called = max((self._calls.get(call, -1) for call in turn.calls), default=-1)
        if called > after:
            return called
        if turn.said is None:
            return None
        said = _first_after(self._said.get(turn.said.digest, ()), after)
        if said is None:
            return None
        was_asked_here = self._lengths.get(turn.transcript) == said
        return said if was_asked_here or turn.said.length >= SHORTEST_OWN or self._has_question(turn) else None

    def _has_question(self, turn: HeardTurn) -> bool:
        asked = [*(digest in self._told for digest in turn.told), *(one in self._results for one in turn.results)]
        return bool(asked) and all(asked)

    def _place_of_question(self, turn: HeardTurn, after: int) -> int | None:
        """Returns the place of the turn's last new message, if the transcript has all of them, and then others without
        an answer between: then its client kept the words and lost the answer. None if they were taken back, have
        another answer there, or are to be answered again.
        """
        place = after
        for digest in turn.told:
            found = _first_after(self._told.get(digest, ()), place)
            if found is None:
                return None
            place = found
        place = max([place, *(self._results.get(result, -2) for result in turn.results)])
        if any(result not in self._results for result in turn.results) or not (turn.told or turn.results):
            return None
        return place if place < self._last_user and not self._has_other_answer(turn, place + 1) else None

    def _has_other_answer(self, turn: HeardTurn, place: int) -> bool:
        """Returns whether an assistant's message is at the place, and is not what its client made of the turn's."""
        if self._messages[place].role != "assistant":
            return False
        return turn.said is None or find_said(Passages([turn.said]), self._messages[place]) is None

    def _find_changed_answers(self, turns: Collection[HeardTurn]) -> None:
        """Finds answers that the client joined, wrapped or cut, and calls that it sends back as text."""
        said = {turn.said.digest: turn.said for turn in turns if turn.said is not None}
        calls = {call for turn in turns for call in turn.calls}
        passages: Passages | None = None
        for place, message in enumerate(self._messages):
            if message.role != "assistant" or spoken_digest(message) in said:
                continue
            if any(call.id in calls for call in message.tool_calls):
                continue
            self._calls |= dict.fromkeys(calls.intersection(quoted_ids(message)), place)
            passages = passages or Passages(said.values())
            passage = find_said(passages, message)
            if passage is not None:
                self._said[passage.digest].append(place)

    def _places_of_summaries(self, turns: Collection[HeardTurn]) -> dict[str, int]:
        """Returns the last place of each text that the agent gave aside and that a message is mostly made of, such as a
        summary by which the client replaced what came before.
        """
        said = [turn.said for turn in turns if turn.kind in ("aside", "summary") and turn.said is not None]
        passages = Passages(one for one in said if one.length >= SHORTEST_SUMMARY)
        found: dict[str, int] = {}
        for place, message in enumerate(self._messages) if said else ():
            if message.role in ("user", "assistant"):
                passage = passages.last_in(spoken_bytes(message))
                if passage is not None:
                    found[passage.digest] = place
        return found


def _first_after(places: Sequence[int], after: int) -> int | None:
    return next((place for place in places if place > after), None)
