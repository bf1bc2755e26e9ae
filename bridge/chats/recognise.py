"""Finds the chat that a client's transcript goes on with, and where the two part. Pure.

The agent's answers tell: its calls have ids that occur once, and its words are mostly its own. What a chat has behind
the last answer that the transcript has, too, was taken back, or its client lost it: they part there. Messages that are
asked again without their answer then reach the agent again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from bridge.chats.lists import Chat
from bridge.chats.paths import is_whole, parted_places
from bridge.fingerprints import Passages, digests_of_beginnings, message_digest, spoken_digest
from bridge.heard.alignment import SHORTEST_OWN, SHORTEST_SUMMARY, quoted_ids, spoken_bytes
from bridge.heard.records import HeardTurn, TurnKind
from bridge.turn import Message, Turn

_ASIDE: tuple[TurnKind, ...] = ("aside", "summary")


@dataclass(frozen=True, slots=True)
class FoundChat:
    """The chat, and the turns of its path with which the transcript goes on. `parts_after`: the id of the last message
    that both have, None if the transcript goes on with the whole chat. `began_after`: the id of the last message before
    those of an earlier attempt at the turn, "" without any in the context.
    """

    chat_id: str
    path: tuple[HeardTurn, ...]
    parts_after: str | None = None
    began_after: str = ""


@dataclass(frozen=True, slots=True)
class _Fit:
    """How well a chat fits. `place`: of the last answer that the transcript and the chat surely have in common, with
    its question, or -1. `matched`: how many turns they have so in common.
    """

    found: FoundChat
    place: int
    matched: int


def find_chat(
    turn: Turn, name: str, chats: Mapping[str, Chat], paths: Mapping[str, Sequence[HeardTurn]], root: str
) -> FoundChat | None:
    """Returns the chat of the turn, None if it begins a new one. `chats` are those that the turn may go on with, and
    `name` the digest of the client's name for its chat, "" if it has none. Of chats that fit alike, it is one from
    which the transcript does not part, then one of the same name, then the last used. `root`: the id of the agent's
    system prompt.
    """
    if turn.follows:
        return _chat_of_turn_before(turn, chats, paths)
    transcript = _Transcript(turn.transcript, [path for chat, path in paths.items() if chat in chats])
    fits = []
    for chat_id, path in paths.items():
        chat = chats.get(chat_id)
        is_named = chat is not None and name != "" and chat.name == name and is_whole(path, root)
        fit = transcript.fit(chat_id, path, is_named=is_named) if chat is not None else None
        if chat is not None and fit is not None:
            fits.append((fit, chat))
    if not fits:
        return None

    def quality(one: tuple[_Fit, Chat]) -> tuple[int, int, bool, bool, float]:
        fit, chat = one
        return (fit.place, fit.matched, fit.found.parts_after is None, chat.name == name, chat.used)

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
        parts_after = next((one.begins for one in later if one.kind not in _ASIDE), None)
        found.append((parts_after is None, chats[chat].used, FoundChat(chat, tuple(path), parts_after)))
    return max(found, key=lambda one: one[:2])[2] if found else None


class _Transcript:
    """A client's transcript, by its messages' digests. `paths`: all turns that it may have."""

    def __init__(self, messages: Sequence[Message], paths: Iterable[Sequence[HeardTurn]]) -> None:
        self._messages = messages
        self._told: dict[str, int] = {}
        self._said: defaultdict[str, list[int]] = defaultdict(list)
        self._cut: defaultdict[str, list[int]] = defaultdict(list)
        self._joined: set[int] = set()
        self._calls: dict[str, int] = {}
        self._results: dict[str, int] = {}
        for place, message in enumerate(messages):
            if message.role == "user":
                self._told[message_digest(message)] = place
            elif message.role == "assistant":
                self._said[spoken_digest(message)].append(place)
                self._calls |= dict.fromkeys((call.id for call in message.tool_calls), place)
            elif message.role == "tool":
                self._results[message.tool_call_id] = place
        self._lengths = dict(zip(digests_of_beginnings(messages), count(1), strict=False))
        turns = {id(turn): turn for path in paths for turn in path}.values()
        self._find_changed_answers(turns)
        self._summaries = self._places_of_summaries(turns)

    def fit(self, chat: str, path: Sequence[HeardTurn], *, is_named: bool) -> _Fit | None:
        """Returns how a chat with this path fits, None if the transcript is not surely of this chat: equal answers may
        be given in several. `is_named`: the client calls its chat as this one.
        """
        found = self._find_answers(path, is_named=is_named)
        sure = [(at, place) for at, place in found if self._is_sure(path[at], place)]
        is_cut = bool(found) and found[0][1] == 0
        if not found or not (sure or is_named or is_cut or self._has_summary(path)):
            return None
        last, _ = found[-1]
        later = (at for at in range(last + 1, len(path)) if path[at].kind not in _ASIDE)
        parting = next(later, None)
        place = sure[-1][1] if sure else -1
        if parting is None:
            return _Fit(FoundChat(chat, tuple(path)), place, len(sure))
        return _Fit(FoundChat(chat, tuple(path[:parting]), path[parting].begins), place, len(sure))

    def _find_answers(self, path: Sequence[HeardTurn], *, is_named: bool) -> list[tuple[int, int]]:
        """Returns which turns have their answers in the transcript, and at which places. Both rise. A turn whose whole
        transcript begins this one counts first; without any, the newest turns do, as clients drop what is oldest.
        """
        places = [self._places_of_answer(turn, is_named=is_named) for turn in path]
        found = [(at, place) for at, turn in enumerate(path) if (place := self._exact_place(turn)) in places[at]]
        if found:
            return [*found, *self._rising(places, *found[-1])]
        return self._newest_answers(path, places)

    def _rising(self, places: Sequence[Sequence[int]], last: int, place: int) -> Iterator[tuple[int, int]]:
        """Yields the turns behind the turn `last` with their answers behind `place`, in their order. A message that the
        client joined has the answers of several turns.
        """
        for at in range(last + 1, len(places)):
            behind = (one for one in places[at] if one > place or (one == place and place in self._joined))
            following = next(behind, None)
            if following is not None:
                place = following
                yield at, place

    def _newest_answers(self, path: Sequence[HeardTurn], places: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
        """Returns the newest turns with answers. A text that was given aside, such as a summary, counts only behind all
        answers that the transcript has.
        """
        found: list[tuple[int, int]] = []
        before = len(self._messages)
        for at in reversed(range(len(path))):
            earlier = [one for one in places[at] if one < before or (one == before and one in self._joined)]
            if earlier and path[at].kind not in _ASIDE:
                before = earlier[-1]
                found.append((at, before))
        newest = found[0][1] if found else -1
        asides = [(at, places[at][0]) for at, turn in enumerate(path) if turn.kind in _ASIDE and places[at]]
        summed_up = [one for one in asides if one[1] > newest]
        return [*found[::-1], *summed_up[-1:]]

    def _exact_place(self, turn: HeardTurn) -> int:
        """Returns where the turn's answer stands if the transcript is the same up to there; -1 if it is not."""
        return self._lengths.get(turn.transcript, -1)

    def _is_sure(self, turn: HeardTurn, place: int) -> bool:
        """Returns whether the answer at the place is surely the turn's: by a call, its question or all before it."""
        if turn.kind in _ASIDE or place == self._exact_place(turn):
            return True
        return any(call in self._calls for call in turn.calls) or self._has_question(turn)

    def _has_summary(self, path: Sequence[HeardTurn]) -> bool:
        asides = (turn.said for turn in path if turn.kind in _ASIDE)
        return any(said is not None and said.digest in self._summaries for said in asides)

    def _places_of_answer(self, turn: HeardTurn, *, is_named: bool) -> list[int]:
        """Returns the places, in order, at which the turn's answer may stand. Without its question, a short one counts
        only in a chat that its client calls by the same name.
        """
        if turn.kind in _ASIDE:
            place = self._summaries.get(turn.said.digest) if turn.said else None
            return [] if place is None else [place]
        called = [self._calls[call] for call in turn.calls if call in self._calls]
        if called:
            return [max(called)]
        has_question = self._has_question(turn)
        if turn.said is None:
            # The agent did what it was asked, and said nothing.
            is_silent = turn.kind == "ended" and not turn.calls and has_question
            asked = [*map(self._told.get, turn.told), *map(self._results.get, turn.results)]
            last = max((place for place in asked if place is not None), default=-1)
            return [last] if is_silent and last + 1 < len(self._messages) else []
        places = self._said.get(turn.said.digest, [])
        if has_question:
            return sorted([*places, *self._cut.get(turn.said.digest, ())])
        if not turn.transcript:  # read from the server: only the question tells equal answers apart
            return []
        if is_named or turn.said.length >= SHORTEST_OWN:
            return places
        return [one for one in places if one == self._exact_place(turn)]

    def _has_question(self, turn: HeardTurn) -> bool:
        # Some clients drop old results, and keep the calls.
        answered = (one in self._results or one in self._calls for one in turn.results)
        asked = [*(digest in self._told for digest in turn.told), *answered]
        return bool(asked) and all(asked)

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
            content = spoken_bytes(message)
            parts, cut = passages.all_in(content), passages.cut_to(content)
            for passage in {part.digest: part for part in parts}.values():
                self._said[passage.digest].append(place)
            if len(parts) > 1:
                self._joined.add(place)
            elif not parts and cut is not None:
                self._cut[cut.digest].append(place)

    def _places_of_summaries(self, turns: Collection[HeardTurn]) -> dict[str, int]:
        """Returns the last place of each text that the agent gave aside and that a message is mostly made of, such as a
        summary by which the client replaced what came before.
        """
        said = [turn.said for turn in turns if turn.kind in _ASIDE and turn.said is not None]
        passages = Passages(one for one in said if one.length >= SHORTEST_SUMMARY)
        found: dict[str, int] = {}
        for place, message in enumerate(self._messages) if said else ():
            if message.role in ("user", "assistant"):
                passage = passages.last_in(spoken_bytes(message))
                if passage is not None:
                    found[passage.digest] = place
        return found
