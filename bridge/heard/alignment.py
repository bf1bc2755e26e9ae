"""Compares a client's transcript with what its agent heard and said, turn by turn, and finds what is new to the agent.

Clients make transcripts up as they like: they put files before an answer that nobody gave, bring examples, import
chats, or change what was said. Equal texts count as often as they occur.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import chain, count
from typing import Any

from bridge.fingerprints import (
    Passage,
    Passages,
    bare_bytes,
    digests_of_beginnings,
    message_digest,
    spoken_digest,
    without_thoughts,
)
from bridge.heard.records import HeardTurn
from bridge.turn import CallIds, Message

# A shorter answer aside, such as a title, may by chance be what a user says.
SHORTEST_SUMMARY = 200
# A shorter answer may by chance be one of another conversation.
SHORTEST_OWN = 40
# Begins the digest of a replaced message in a list of older messages.
REPLACED = "-"
_NO_PASSAGES = Passages(())
_MAYBE_IDS = re.compile(r"[\w/-]{16,80}")


class Alignment:
    """The messages of a transcript up to the last assistant message, by their places; `newer` are those after it.

    - `unmatched`: nothing shows yet that the agent said these messages or was told them.
    - `standing`: the agent knows these because it was told that they stand in the transcript.
    - `has_notes`: the notes have any turn of the agent.
    - `restored`: the agent was told these, then others stood in their places, and now they are back.
    - `replaced`: digests of messages that the agent was told, and that are gone although its answer to them is here.
    - `last_answer`: the place of the last message that the agent said in a turn that was not broken off, or -1.
    - `found_calls`: the agent's calls of which only its stored messages tell.
    - `attempted_since`: digests of what the agent may have been told in this conversation, in turns that were broken
      off, after the last message here that it said.
    - `told`: digests of all that the agent was told, in whatever conversation.
    - `attempted`: digests of all that the agent may have been told in turns that were broken off.
    - `transcript`: the digest of the whole transcript, with `newer`.
    """

    def __init__(self, messages: Sequence[Message], newer: Sequence[Message], call_ids: CallIds) -> None:
        self.messages = messages
        self.digests = [*map(message_digest, messages)]
        self.unmatched = {at for at, message in enumerate(messages) if not _is_known_by_itself(message, call_ids)}
        self.standing: set[int] = set()
        self.told: set[str] = set()
        self.restored: set[int] = set()
        self.replaced: set[str] = set()
        self.attempted: set[str] = set()
        self.attempted_since: set[str] = set()
        self.last_answer = -1
        self.found_calls: list[str] = []
        self.has_notes = False
        beginnings = digests_of_beginnings(chain(messages, newer))
        self.transcript = beginnings[-1] if beginnings else ""
        self._all_digests = frozenset(chain(self.digests, map(message_digest, newer)))
        self._opens_with_several = not messages and len(newer) > 1
        self._lengths = dict(zip(beginnings, count(1), strict=False))
        self._passages: list[Passage] = []
        self._summaries: list[Passage] = []
        self._asides: list[Passage] = []
        self._all_summaries = self._all_asides = _NO_PASSAGES
        self._parent: HeardTurn | None = None
        self._told_since: dict[str, set[str]] = {}
        self._history = ""
        self._history_place = (-1, False, False)
        self._attempted_history = ""
        self._last_said = -1
        self._places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._places_of_calls: dict[str, int] = {}
        self._index_messages()
        self._newest = {words: places[-1] for words, places in self._places.items()}

    @property
    def told_since(self) -> set[str]:
        """Digests of what the agent was told in this conversation after the last message here that it said. If it said
        no message, the same transcript may be of another conversation with equal words.
        """
        is_continued = self._parent is not None
        told = (told for beginning, told in self._told_since.items() if is_continued or beginning != self.transcript)
        return set().union(*told)

    def match_turns(self, turns: Iterable[HeardTurn], find_history: Callable[[str], list[str]]) -> None:
        """Matches the messages with the agent's turns, the newest first, until all are matched or no turn is left. The
        turns are not read from the store for a transcript of one message. If it opens with several new ones, the turns
        say which of them the agent may have been told before.
        """
        if not self.unmatched and not self._opens_with_several:
            return
        doubtful: list[HeardTurn] = []
        for turn in turns:
            self.has_notes = True
            if not self.unmatched and not self._opens_with_several:
                break
            self._match_turn(turn, doubtful)
        for turn in doubtful:
            self._match_words(turn)
        self._match_history(find_history(self._history))
        self._match_passages()
        if self.unmatched or self.restored:
            self.attempted |= set(find_history(self._attempted_history))

    def _match_history(self, known: Sequence[str]) -> None:
        """Matches messages that stood in the transcript in its turn before this one, at whatever place. Those that had
        been replaced then are restored now.
        """
        replaced = {one.removeprefix(REPLACED) for one in known if one.startswith(REPLACED)}
        if replaced:
            places = {digest: place for place, digest in enumerate(self.digests) if digest in replaced}
            self.restored = {*places.values()} - self.unmatched
        counts = Counter(known)
        for place in sorted(self.unmatched) if counts else ():
            digest = self.digests[place]
            if counts.get(digest, 0) > 0:
                counts[digest] -= 1
                self.note_standing(place)

    def note_said(self, place: int) -> None:
        """Matches a message that the agent said. Its calls are noted again; a message without calls as standing."""
        calls = [call.id for call in self.messages[place].tool_calls]
        if not calls:
            self.standing.add(place)
        self.unmatched.discard(place)
        self.found_calls += calls

    def note_standing(self, place: int) -> None:
        """Matches a message that the agent knows; a later turn finds it among those that stand in the transcript."""
        self.unmatched.discard(place)
        self.standing.add(place)

    def is_own_call(self, call_id: str) -> bool:
        """Returns whether the call was made by the agent, as far as this transcript shows it."""
        place = self._places_of_calls.get(call_id)
        return place is not None and place not in self.unmatched and place not in self.standing

    def has_call(self, call_id: str) -> bool:
        return call_id in self._places_of_calls

    # --- one turn -------------------------------------------------------------------------------------

    def _index_messages(self) -> None:
        for place, message in enumerate(self.messages):
            if message.tool_calls:
                self._places_of_calls |= dict.fromkeys((call.id for call in message.tool_calls), place)
            if message.role == "assistant":
                if not message.tool_calls:
                    self._places["said", spoken_digest(message)].append(place)
            elif message.role == "user":
                self._places["told", self.digests[place]].append(place)
            elif message.role == "tool":
                self._places["result", message.tool_call_id].append(place)

    @cached_property
    def _places_of_quotes(self) -> dict[str, int]:
        """The places of calls that their client sends back as text. Only looked for if a call is nowhere else."""
        return {one: place for place, message in enumerate(self.messages) for one in quoted_ids(message)}

    def _match_turn(self, turn: HeardTurn, doubtful: list[HeardTurn]) -> None:
        """Matches what happened in one turn. Equal words may be of another conversation: if the transcript does not
        have all of the turn, its words are `doubtful`, and only matched when no turn is left that fits better.
        """
        self._note_passage(turn)
        since = self._parent is None and self._lengths.get(turn.transcript, 0) > len(self.messages)
        for call in turn.calls:
            place = self._places_of_calls.get(call)
            if place is None:
                place = self._places_of_quotes.get(call)
            self._match_place(place, turn)
        if turn.kind == "broken off":
            self._note_attempt(turn, since=since)
            return
        self.told.update(turn.told)
        if since:
            self._told_since.setdefault(turn.transcript, set()).update(turn.told)
        if turn.kind == "ended":
            self._note_history(turn)
        self._note_replaced(turn)
        for result in turn.results:
            self._match("result", result, turn)
        has_all = all(self._places.get(("told", digest)) for digest in turn.told)
        if has_all and (turn.said is None or turn.calls or self._places.get(("said", turn.said.digest))):
            self._match_words(turn)
        else:
            doubtful.append(turn)

    def _note_attempt(self, turn: HeardTurn, *, since: bool) -> None:
        self.attempted.update(turn.told)
        if since:
            self.attempted_since.update(turn.told)
        if self._history_place[0] < 0:  # otherwise a later turn of this conversation tells what stands in it
            self._attempted_history = self._attempted_history or turn.history

    def _note_replaced(self, turn: HeardTurn) -> None:
        said = turn.said
        has_said = said is not None and said.length >= SHORTEST_OWN and ("said", said.digest) in self._newest
        if has_said or any(call in self._places_of_calls for call in turn.calls):
            self.replaced.update(told for told in turn.told if told not in self._all_digests)

    def _note_history(self, turn: HeardTurn) -> None:
        """Notes the list of older messages of the turn whose answer is the last in the transcript. An earlier turn that
        is not surely of this conversation may only have an equal answer, so it does not replace a list of one that is.
        """
        place, is_sure = self._place_after(turn)
        found = (place, turn.history != "", is_sure)
        _, has_list, has_sure = self._history_place
        if found > self._history_place and (is_sure or not (has_list and has_sure)):
            self._history, self._history_place = turn.history, found

    def _place_after(self, turn: HeardTurn) -> tuple[int, bool]:
        """Returns the place of the turn's answer, -1 if the turn is of another conversation; and whether that is sure,
        because the transcript has a call of the turn, or begins as it did then: the client may have dropped the answer.
        """
        sure = self._lengths.get(turn.transcript, -1)
        called = max((self._places_of_calls.get(call, -1) for call in turn.calls), default=-1)
        if max(sure, called) >= 0:
            return max(sure, called), True
        has_told = bool(turn.told) and all(("told", digest) in self._newest for digest in turn.told)
        if turn.said is None or not (has_told or turn.said.length >= SHORTEST_OWN):
            return -1, False
        return self._newest.get(("said", turn.said.digest), -1), False

    def _note_passage(self, turn: HeardTurn) -> None:
        """Notes what the agent said. Only a summary is looked for in a user's message: the client puts it there itself,
        where a person may put other answers among words of their own.
        """
        if turn.said is None or (turn.kind in ("aside", "summary") and turn.said.length < SHORTEST_SUMMARY):
            return
        (self._summaries if turn.kind == "summary" else self._passages).append(turn.said)
        if turn.kind == "aside":
            self._asides.append(turn.said)

    def _match_words(self, turn: HeardTurn) -> None:
        for digest in turn.told:
            self._match("told", digest, turn)
        if turn.said is not None:
            self._match("said", turn.said.digest, turn)

    def _match(self, kind: str, digest: str, turn: HeardTurn) -> None:
        places = self._places.get((kind, digest))
        if places:
            self._match_place(places.pop(), turn)

    def _match_place(self, place: int | None, turn: HeardTurn) -> None:
        """Matches the message at the place. The turn of the last message that the agent said is the one before."""
        if place is None:
            return
        self.unmatched.discard(place)
        if self.messages[place].role != "assistant":
            return
        if place > self._last_said:
            self._last_said, self._parent = place, turn
        if turn.kind != "broken off":
            self.last_answer = max(self.last_answer, place)

    # --- what clients join, wrap or cut ----------------------------------------------------------------

    def _match_passages(self) -> None:
        """Matches texts that are mostly the agent's words, and messages that are mostly a summary."""
        self._all_summaries, self._all_asides = Passages(self._summaries), Passages(self._asides)
        own = Passages([*self._passages, *self._summaries] if self.unmatched else ())
        for place in sorted(self.unmatched):
            message = self.messages[place]
            if message.role == "assistant":
                is_known = find_said(own, message) is not None
            else:
                is_known = message.role == "user" and self.is_summary(message)
            if is_known:
                self.unmatched.discard(place)

    def is_summary(self, message: Message) -> bool:
        """Returns whether the message is mostly a summary that the agent gave aside."""
        return bool(self._summaries) and self._all_summaries.last_in(spoken_bytes(message)) is not None

    def is_answer_aside(self, message: Message) -> bool:
        """Returns whether the message is mostly an answer that the agent gave aside, such as a summary."""
        if self.is_summary(message):
            return True
        return bool(self._asides) and self._all_asides.last_in(spoken_bytes(message)) is not None


def _is_known_by_itself(message: Message, call_ids: CallIds) -> bool:
    """Returns whether a message says nothing, or is the result of a call that the bridge made up."""
    if message.role == "tool":
        return call_ids.is_ending_id(message.tool_call_id)
    if message.images or message.tool_calls:
        return False
    text = without_thoughts(message.text) if message.role == "assistant" else message.text
    return not text or text.isspace()


def find_said(passages: Passages, message: Message) -> Passage | None:
    """Returns the last of the agent's passages in an assistant's message that is mostly made of them, or was cut."""
    content = spoken_bytes(message)
    return passages.last_in(content) or passages.cut_to(content)


def quoted_ids(message: Message) -> list[str]:
    """Returns words in an assistant's text that may be ids of calls: some clients send calls back as text."""
    return _MAYBE_IDS.findall(message.text) if message.role == "assistant" else []


def spoken_bytes(message: Message) -> bytes:
    """Returns the words of a message without white space, of an assistant's message also those in its calls: the
    bridge may have made a call of the agent's text.
    """
    if message.role != "assistant":
        return bare_bytes(message.text)
    words = [without_thoughts(message.text), *(_words_in(call.arguments) for call in message.tool_calls)]
    return bare_bytes("".join(words))


def _words_in(arguments: str) -> str:
    """Returns the texts in the arguments of a call."""
    try:
        value: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return ""
    values = value.values() if isinstance(value, dict) else ()
    return "".join(one for one in values if isinstance(one, str))
