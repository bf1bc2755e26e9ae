"""Looks for messages of a transcript among an agent's stored messages, where the bridge's own notes do not have them.

The notes may be lost, or too old, or of a turn that was broken off, so that only the server knows what the agent got.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bridge.fingerprints import Passage, bare_bytes, is_covered
from bridge.heard.alignment import Alignment, spoken_bytes
from bridge.heard.telling import told_text
from bridge.letta.gateway import Agent, StoredMessage
from bridge.turn import CallIds, Message

_USER = "user_message"
_SAID = "assistant_message"
_RETURN = "tool_return_message"


@dataclass(slots=True)
class _StoredTurn:
    """What an agent got and did between two times that it was spoken to."""

    told: list[bytes] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    returns: list[bytes] = field(default_factory=list)


class StoredTalk:
    """The stored messages that the agent knows: those in its context, and older ones, which it has summed up since. A
    newer message that is not in the context is of a run that failed, and the agent never got it.
    """

    def __init__(self, agent: Agent, rows: Sequence[StoredMessage], call_ids: CallIds) -> None:
        self._call_ids = call_ids
        self._turns = _turns_of(_rows_that_the_agent_knows(agent, rows))
        self._left: Counter[bytes] = Counter()

    def match(self, alignment: Alignment) -> None:
        """Matches messages that are still unmatched. The agent knows them from now on as standing in the transcript."""
        replies = self._match_replies(alignment)
        self._left = Counter(told for turn in self._turns for told in turn.told)
        self._left.subtract(
            bare_bytes(told_text(message))
            for place, message in enumerate(alignment.messages)
            if place not in alignment.unmatched and (message.role == "user" or place in alignment.standing)
        )
        for place in sorted(alignment.unmatched):
            if self._is_known(alignment, place, replies):
                alignment.note_standing(place)

    def has_told(self, message: Message) -> bool:
        words = bare_bytes(message.text)
        return any(words == told for turn in self._turns for told in turn.told)

    def _match_replies(self, alignment: Alignment) -> dict[int, _StoredTurn]:
        """Matches what the agent said. Returns for each place of an assistant message the turn in which it did."""
        replies = {}
        for place, message in enumerate(alignment.messages):
            turn = self._turn_that_said(message) if message.role == "assistant" else None
            if turn is not None:
                replies[place] = turn
                if place in alignment.unmatched:
                    alignment.note_said(place)
        return replies

    def _is_known(self, alignment: Alignment, place: int, replies: Mapping[int, _StoredTurn]) -> bool:
        """Returns whether the agent got an unmatched message. If the notes have the conversation, equal words that it
        was told elsewhere do not count, because they may have been replaced by others since.
        """
        message = alignment.messages[place]
        if message.role == "tool" and alignment.is_own_call(message.tool_call_id):
            return self._was_returned(message)
        if message.role == "user":
            later = range(place, len(alignment.messages))
            reply = next((at for at in later if alignment.messages[at].role == "assistant"), -1)
            if reply in replies and _contains(replies[reply].told, message):
                return True
        if alignment.is_continued and alignment.digests[place] not in alignment.attempted:
            return False
        told = bare_bytes(told_text(message))
        self._left[told] -= 1
        return self._left[told] >= 0

    def _turn_that_said(self, message: Message) -> _StoredTurn | None:
        places = map(self._call_ids.message_and_index, (call.id for call in message.tool_calls))
        ids = {place[0] for place in places if place is not None}
        content = spoken_bytes(message)
        for turn in reversed(self._turns):
            if not ids.isdisjoint(turn.ids) or is_covered(content, map(Passage.of, turn.said)):
                return turn
        return None

    def _was_returned(self, message: Message) -> bool:
        place = self._call_ids.message_and_index(message.tool_call_id)
        if place is None:
            return False
        result = bare_bytes(message.text)
        return any(place[0] in turn.ids and (result in turn.returns or not result) for turn in self._turns)


def _contains(told: Sequence[bytes], message: Message) -> bool:
    """Returns whether the user's words are a part of what the agent was told: some clients put more around a user's
    words in the request that asks for the reply, and send the bare words later.
    """
    words = bare_bytes(message.text)
    return any(words in one for one in told) if words else not message.images


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
            turns[-1].said.append(row.text)
        elif row.kind == _RETURN:
            turns[-1].returns += [bare_bytes(row.text), *map(bare_bytes, row.returns.values())]
    return turns
