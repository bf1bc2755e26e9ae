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
_HELD = "approval_request_message"
_RETURN = "tool_return_message"


@dataclass(slots=True)
class _Turn:
    """A turn while its rows are read. `begins`: the id of the message before it. `call`: the client's call with which
    it ends, "" as long as there is none. `answers`: the call whose result it begins with.
    """

    begins: str
    answers: str = ""
    call: str = ""
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
    return [_heard_turn(chat.id, turn) for turn in _turns(chat, root, rows, known_calls)]


def calls_by_message(call_ids: CallIds, calls: Sequence[str]) -> dict[str, str]:
    """Returns calls by the ids of the Letta messages that they name; of a message with several, the last."""
    places = ((call, call_ids.message_and_index(call)) for call in calls)
    return {place[0]: call for call, place in places if place is not None}


def _turns(
    chat: Chat, root: str, rows: Mapping[str, Sequence[StoredMessage]], known_calls: Mapping[str, str]
) -> Iterator[_Turn]:
    turn, before = _Turn(root), root
    kinds: set[str] = set()
    for message_id in chat.message_ids:
        of_message = rows.get(message_id, ())
        kinds_before, kinds = kinds, {row.kind for row in of_message}
        # Only a held call has its return later.
        goes_on = bool(turn.call) and (_RETURN not in kinds or _HELD in kinds_before)
        if (_USER in kinds and turn.ids) or goes_on:
            yield turn
            turn = _Turn(before, answers="" if _USER in kinds else turn.call)
        for row in of_message:
            if row.kind == _USER:
                turn.told.append(message_digest(Message("user", row.text)))
                turn.otid = turn.otid or row.otid
            elif row.kind == _SAID:
                turn.said.append(row.text)
        if _USER not in kinds:
            turn.ids.append(message_id)
        turn.call = known_calls.get(message_id, turn.call)
        before = message_id
    yield turn


def _heard_turn(chat_id: str, turn: _Turn) -> HeardTurn:
    said = Passage.of("\n\n".join(turn.said))
    return HeardTurn(
        "ended",
        told=tuple(turn.told),
        results=(turn.answers,) if turn.answers else (),
        said=said if said.length else None,
        calls=(turn.call,) if turn.call else (),
        chat=chat_id,
        begins=turn.begins,
        turn=_turn_of_otid(turn.otid),
    )


def _turn_of_otid(otid: str) -> str:
    """Returns the id of the turn that sent a message with this otid (see PreparedTurn.messages and quote_otid)."""
    quoting, is_quote, _ = otid.partition("-result-")
    return quoting if is_quote else otid.rpartition("-")[0]
