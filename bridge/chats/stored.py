"""Reads the turns of chats from the agent's stored messages, where the bridge's own notes of them are lost. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.chats.lists import Chat
from bridge.fingerprints import Passage, message_digest
from bridge.heard.records import HeardTurn
from bridge.letta.gateway import StoredMessage
from bridge.turn import CallIds, Message

_USER = "user_message"
_SAID = "assistant_message"


@dataclass(slots=True)
class _Turn:
    """A turn while its rows are read. `begins`: the id of the message before it."""

    begins: str
    otid: str = ""
    told: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)


def turns_of_chat(
    chat: Chat, root: str, rows: Mapping[str, Sequence[StoredMessage]], known_calls: Mapping[str, str]
) -> list[HeardTurn]:
    """Returns the turns of a chat as its messages tell them, the oldest first. `rows` are the stored messages by their
    ids, `known_calls` the calls of the transcript by the ids of the messages that have them.
    """
    return [_heard_turn(chat.id, turn, known_calls) for turn in _turns(chat, root, rows)]


def calls_by_message(call_ids: CallIds, calls: Sequence[str]) -> dict[str, str]:
    """Returns calls by the ids of the Letta messages that they name; of a message with several, the last."""
    places = ((call, call_ids.message_and_index(call)) for call in calls)
    return {place[0]: call for call, place in places if place is not None}


def _turns(chat: Chat, root: str, rows: Mapping[str, Sequence[StoredMessage]]) -> Iterator[_Turn]:
    turn, before = _Turn(root), root
    for message_id in chat.message_ids:
        of_message = rows.get(message_id, ())
        if any(row.kind == _USER for row in of_message) and turn.ids:
            yield turn
            turn = _Turn(before)
        for row in of_message:
            if row.kind == _USER:
                turn.told.append(message_digest(Message("user", row.text)))
                turn.otid = turn.otid or row.otid
            elif row.kind == _SAID:
                turn.said.append(row.text)
        if not any(row.kind == _USER for row in of_message):
            turn.ids.append(message_id)
        before = message_id
    yield turn


def _heard_turn(chat_id: str, turn: _Turn, known_calls: Mapping[str, str]) -> HeardTurn:
    said = Passage.of("\n\n".join(turn.said))
    return HeardTurn(
        "ended",
        told=tuple(turn.told),
        said=said if said.length else None,
        calls=tuple(known_calls[one] for one in turn.ids if one in known_calls),
        chat=chat_id,
        begins=turn.begins,
        turn=_turn_of_otid(turn.otid),
    )


def _turn_of_otid(otid: str) -> str:
    """Returns the id of the turn that sent a message with this otid (see PreparedTurn.messages and quote_otid)."""
    quoting, is_quote, _ = otid.partition("-result-")
    return quoting if is_quote else otid.rpartition("-")[0]
