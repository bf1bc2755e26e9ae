"""Rows about an agent's chats for the operator, made from the agent, its stored messages and the history. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.chats.lists import MAIN, Chat, ChatLists
from bridge.history.records import TurnRecord
from bridge.interception.method import find_provisional_text
from bridge.interception.stored_messages import REQUEST, RETURN
from bridge.letta.gateway import Agent, StoredMessage
from bridge.turn import CallIds


@dataclass(frozen=True, slots=True)
class ChatRow:
    """A chat of an agent as the operator sees it. `client` is the name of the client's key, "" if there is none.
    `messages` counts those in the chat's context, without the system prompt. `last_used` is a Unix time, 0 if unknown.
    `waits_for` are the tools whose calls are the chat's last message, and of which the client has not sent the results.
    """

    id: str
    is_main: bool
    client: str
    in_context: bool
    messages: int
    last_used: float = 0.0
    waits_for: tuple[str, ...] = ()


def chat_rows(
    agent: Agent, messages: Iterable[StoredMessage], turns: Sequence[TurnRecord], call_ids: CallIds
) -> list[ChatRow]:
    """Returns the agent's chats, the last used first; none if the agent has no chat beside the main one. `messages` are
    the newest of the agent, in any order and of all its chats; `turns` its last turns, the newest first.
    """
    lists = ChatLists.of(agent)
    if not lists.is_kept:
        return []
    stored: defaultdict[str, list[StoredMessage]] = defaultdict(list)
    for message in messages:
        stored[message.id].append(message)
    called = _calls_of_turns(turns, call_ids)
    last_turn = next((turn.started + turn.seconds for turn in turns if turn.ended and not turn.aside), 0.0)
    rows = [_row_of_chat(chat, lists.current, stored, called, last_turn) for chat in lists.chats.values()]
    return sorted(rows, key=lambda row: (not row.in_context, -row.last_used, row.id))


def _row_of_chat(
    chat: Chat,
    current: str,
    stored: Mapping[str, Sequence[StoredMessage]],
    called: Mapping[str, tuple[str, ...]],
    last_turn: float,
) -> ChatRow:
    """Notes of a chat are only written when it comes into the context or leaves it: the agent's last turn was in the
    chat that is in the context now.
    """
    return ChatRow(
        id=chat.id,
        is_main=chat.id == MAIN,
        client=chat.client,
        in_context=chat.id == current,
        messages=len(chat.message_ids),
        last_used=max(chat.used, last_turn) if chat.id == current else chat.used,
        waits_for=_waiting_tools(chat, stored, called),
    )


def _waiting_tools(
    chat: Chat, stored: Mapping[str, Sequence[StoredMessage]], called: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns the tools that the chat waits for. The stored messages say whether it waits, if its last message is among
    them; the history has the names that the client gave the tools.
    """
    last = chat.message_ids[-1] if chat.message_ids else ""
    names = called.get(last, ())
    for message in stored.get(last, ()):
        if message.kind == REQUEST:
            return names or tuple(call.name for call in message.calls)
        if message.kind == RETURN:
            waiting = _calls_without_result(chat, message, stored)
            return names if len(names) == len(waiting) else waiting
    return names


def _calls_without_result(
    chat: Chat, returned: StoredMessage, stored: Mapping[str, Sequence[StoredMessage]]
) -> tuple[str, ...]:
    """Returns the names of the calls that only have a provisional return. The calls are in the last message before it
    that has any; "?" is the name of a call that is older than the messages that were read.
    """
    before = (message for message_id in reversed(chat.message_ids) for message in stored.get(message_id, ()))
    calls = next((message.calls for message in before if message.calls), ())
    if not calls:
        return ("?",) if find_provisional_text(returned.text) is not None else ()
    texts = ((call.name, returned.returns.get(call.call_id, returned.text)) for call in calls)
    return tuple(name for name, text in texts if find_provisional_text(text) is not None)


def _calls_of_turns(turns: Sequence[TurnRecord], call_ids: CallIds) -> dict[str, tuple[str, ...]]:
    """Returns the tools that turns which ended have called, by the ids of the Letta messages with the calls."""
    found: dict[str, tuple[str, ...]] = {}
    for turn in turns:
        for step in turn.calls if turn.ended else ():
            place = call_ids.message_and_index(step.call_id)
            if place is not None:
                found[place[0]] = (*found.get(place[0], ()), step.name)
    return found
