"""Looks for messages of a transcript among an agent's stored messages, where the bridge's own notes do not have them.

The notes may be lost, or too old, or of a turn that was broken off, so that only the server knows what the agent got.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.fingerprints import Passage, Passages, bare_bytes
from bridge.heard.alignment import Alignment, find_said, quoted_ids
from bridge.heard.telling import told_text
from bridge.letta.gateway import Agent, StoredMessage
from bridge.turn import CallIds, Message

# In how many of a turn's messages a user's words are searched.
MOST_WRAPPED = 20
# Less around the words is not a client's template: the user may have shortened the message.
LEAST_WRAPPING = 200

_USER = "user_message"
_SAID = "assistant_message"
_RETURN = "tool_return_message"


@dataclass(slots=True)
class _StoredTurn:
    """What an agent got and did between two times that it was spoken to."""

    told: list[bytes] = field(default_factory=list)
    said: list[Passage] = field(default_factory=list)
    words: list[bytes] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    returns: list[bytes] = field(default_factory=list)


class StoredTalk:
    """The stored messages that the agent knows: those in its context, and older ones, which it has summed up since. A
    newer message that is not in the context is of a run that failed, and the agent never got it. `context_only`: nor
    did it get older ones, as they may be of its other chats.
    """

    def __init__(
        self, agent: Agent, rows: Sequence[StoredMessage], call_ids: CallIds, *, context_only: bool = False
    ) -> None:
        if context_only:
            in_context = {*agent.message_ids}
            rows = [row for row in rows if row.id in in_context]
        self._call_ids = call_ids
        self._row_ids = {row.id for row in rows}
        self._turns = _turns_of(_rows_that_the_agent_knows(agent, rows))
        self._turns_of_ids = {one: at for at, turn in enumerate(self._turns) for one in turn.ids}
        self._turns_that_said: defaultdict[str, list[int]] = defaultdict(list)
        for at, turn in enumerate(self._turns):
            for passage in turn.said:
                self._turns_that_said[passage.digest].append(at)
        self._answered = {(passage.digest, told) for turn in self._turns for passage in turn.said for told in turn.told}
        self._passages = Passages(passage for turn in self._turns for passage in turn.said)
        self._left: Counter[bytes] = Counter()
        self._newest_reply = len(self._turns) - 2
        self._notes_are_lost = True

    def match(self, alignment: Alignment) -> None:
        """Matches messages that are still unmatched. The agent knows them from now on as standing in the transcript."""
        before = set(alignment.unmatched)
        replies = self._match_replies(alignment)
        self._notes_are_lost = not alignment.has_notes or before != alignment.unmatched
        noted = replies.get(alignment.last_answer)
        self._newest_reply = max(replies.values(), default=self._newest_reply) if noted is None else noted
        self._left = self._count_told(alignment, after=None if self._notes_are_lost else noted)
        answers = _turns_of_answers(alignment.messages, replies)
        for place in sorted(alignment.unmatched):
            if self._is_known(alignment, place, answers[place]):
                alignment.note_standing(place)

    def _count_told(self, alignment: Alignment, after: int | None) -> Counter[bytes]:
        """Counts what the agent was told after this turn, for None in all turns, apart from messages that are known."""
        if after is not None:
            return Counter(told for turn in self._turns[after + 1 :] for told in turn.told)
        left = Counter(told for turn in self._turns for told in turn.told)
        left.subtract(
            bare_bytes(told_text(message))
            for place, message in enumerate(alignment.messages)
            if place not in alignment.unmatched and (message.role == "user" or place in alignment.standing)
        )
        return left

    def has_told_since(self, message: Message) -> bool:
        """Returns whether the agent was told the words after the last reply of the transcript that it gave."""
        words = bare_bytes(message.text)
        return any(words in turn.told for turn in self._turns[self._newest_reply + 1 :])

    def _match_replies(self, alignment: Alignment) -> dict[int, int]:
        """Matches what the agent said. Returns for each place of an assistant message the turn in which it did. Of
        equal replies, the newest is of the newest turn. A call that was given up may be in no turn, because the method
        `relay` removes it from the context.
        """
        replies = {}
        for place in reversed(range(len(alignment.messages))):
            message = alignment.messages[place]
            turn = self._turn_that_said(message) if message.role == "assistant" else None
            if turn is not None:
                replies[place] = turn
            if place in alignment.unmatched and (turn is not None or self._has_stored_call(message)):
                alignment.note_said(place)
        return replies

    def _has_stored_call(self, message: Message) -> bool:
        places = (self._call_ids.message_and_index(call.id) for call in message.tool_calls)
        return any(place is not None and place[0] in self._row_ids for place in places)

    def _is_known(self, alignment: Alignment, place: int, answer: int | None) -> bool:
        """Returns whether the agent got an unmatched message; `answer` is the turn of the assistant message after it.
        Unless the notes are lost, equal words that it was told elsewhere do not count, because they may have been
        replaced by others since: a turn that was broken off can only have told them after the last reply.
        """
        message = alignment.messages[place]
        if message.role == "tool" and (self._was_returned(message) or alignment.is_own_call(message.tool_call_id)):
            return self._was_returned(message)
        if message.role == "user" and answer is not None and self._was_answered(message, self._turns[answer]):
            return True
        if not self._notes_are_lost and alignment.digests[place] not in alignment.attempted:
            return False
        told = bare_bytes(told_text(message))
        self._left[told] -= 1
        return self._left[told] >= 0

    def _was_answered(self, message: Message, turn: _StoredTurn) -> bool:
        """Returns whether the agent was told a user's message in the turn, or in another one with the same answer."""
        words = bare_bytes(message.text)
        return _contains(turn.told, message) or any((said.digest, words) in self._answered for said in turn.said)

    def _turn_that_said(self, message: Message) -> int | None:
        ids = [*(call.id for call in message.tool_calls), *quoted_ids(message)]
        for place in map(self._call_ids.message_and_index, ids):
            if place is not None and place[0] in self._turns_of_ids:
                return self._turns_of_ids[place[0]]
        passage = find_said(self._passages, message)
        if passage is None:
            return self._turn_with_json(bare_bytes(message.text))
        turns = self._turns_that_said[passage.digest]
        return turns.pop() if len(turns) > 1 else turns[0]

    def _turn_with_json(self, content: bytes) -> int | None:
        """Returns the turn in which the agent said this JSON with words around it, which the client did not get."""
        if content[:1] not in (b"{", b"["):
            return None
        turns = (at for at, turn in enumerate(self._turns) if any(content in words for words in turn.words))
        return next(turns, None)

    def _was_returned(self, message: Message) -> bool:
        place = self._call_ids.message_and_index(message.tool_call_id)
        turn = None if place is None else self._turns_of_ids.get(place[0])
        result = bare_bytes(message.text)
        return turn is not None and (not result or result in self._turns[turn].returns)


def _turns_of_answers(messages: Sequence[Message], replies: Mapping[int, int]) -> list[int | None]:
    """Returns, for each message, the turn of the first assistant message from there on."""
    found: list[int | None] = []
    turn = None
    for place in reversed(range(len(messages))):
        turn = replies.get(place) if messages[place].role == "assistant" else turn
        found.append(turn)
    return found[::-1]


def _contains(told: Sequence[bytes], message: Message) -> bool:
    """Returns whether the user's words are a part of what the agent was told: some clients put more around a user's
    words in the request that asks for the reply, and send the bare words later.
    """
    words = bare_bytes(message.text)
    if not words:
        return not message.images
    wrapped = (one for one in told[-MOST_WRAPPED:] if len(one) >= len(words) + LEAST_WRAPPING)
    return words in told or any(words in one for one in wrapped)


def _rows_that_the_agent_knows(agent: Agent, rows: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Returns the rows, the oldest first. Servers list them in either order."""
    places = {message_id: place for place, message_id in enumerate(agent.message_ids)}
    listed = [places[row.id] for row in rows if places.get(row.id, 0) > 0]
    ordered = rows if not listed or listed[0] <= listed[-1] else rows[::-1]
    # The first message is the system prompt. The second may be a summary, which is newer than what comes after it.
    oldest = next((at for at, row in enumerate(ordered) if places.get(row.id, 0) > 0), len(ordered))
    return [row for at, row in enumerate(ordered) if row.id in places or at < oldest]


def _turns_of(rows: Sequence[StoredMessage]) -> list[_StoredTurn]:
    turns = [_StoredTurn()]
    for row in rows:
        if row.kind == _USER:
            if turns[-1].said or turns[-1].ids:
                turns.append(_StoredTurn())
            turns[-1].told.append(bare_bytes(row.text))
            continue
        turns[-1].ids.add(row.id)
        if row.kind == _SAID:
            turns[-1].said.append(Passage.of(row.text))
            turns[-1].words.append(bare_bytes(row.text))
        elif row.kind == _RETURN:
            turns[-1].returns += [bare_bytes(row.text), *map(bare_bytes, row.returns.values())]
    return turns
