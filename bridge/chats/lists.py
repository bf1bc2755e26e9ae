"""An agent's chats: which messages each has in its context, as kept in the agent's metadata on the Letta server. Pure.

Letta has one context for an agent. The chat whose messages are in it is the `current` one; the messages of the others
are listed here. Every restart, every worker and every bridge in front of the server reads the same lists.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from bridge.heard.records import HeardTurn
from bridge.letta.gateway import CHATS_ENTRY, Agent, AgentChange
from bridge.turn import JsonObject

METADATA_KEY = CHATS_ENTRY
# The chat of all who talk to the agent without the bridge, and of the bridge where agents have one chat.
MAIN = "main"
# How many chats of an agent are kept, and how many characters their lists may have together. Beyond that, the chat that
# was not used for the longest time is let go: its messages stay in the agent's recall. The metadata travels with every
# reading of the agent: 100,000 characters cost Letta some two milliseconds.
MOST_CHATS = 50
MOST_CHARACTERS = 100_000

# For so many seconds less, an abandoned chat counts as used: it is let go before those that are not.
_UNUSED = 30 * 86_400.0
# Unix times are smaller until the year 2286. Who writes an agent's metadata may write any number.
_LATEST = 1e10
_PREFIX = "message-"
_SHORT = re.compile(r"[A-Za-z0-9_-]{22}")


@dataclass(frozen=True, slots=True)
class Chat:
    """One chat: its messages in context after the system prompt, in order. `client` is the name of the client's key,
    `name` a digest of the client's name for the chat, "" if it has none. `used` is the Unix time at which it last came
    into the context or left it. `is_broken_off`: its last turn did not end, and may have left something half done.
    """

    id: str
    client: str = ""
    name: str = ""
    message_ids: tuple[str, ...] = ()
    used: float = 0.0
    is_broken_off: bool = False


@dataclass(frozen=True, slots=True)
class ChatLists:
    """The chats of the agent with this id, and its present context. Always has `current`, and `main`. `swap` names the
    change by which the current chat came into the context, "" if there was none, and `had_messages` says whether the
    chat had any then.
    """

    agent_id: str
    system_id: str
    current: str
    chats: Mapping[str, Chat] = field(default_factory=dict)
    swap: str = ""
    had_messages: bool = False

    @classmethod
    def of(cls, agent: Agent) -> ChatLists:
        """Reads the agent. What is not in the form of this module, or was copied from another agent, counts as missing:
        then the present context is that of the main chat.
        """
        system_id, *context = agent.message_ids or ("",)
        entry = agent.metadata.get(METADATA_KEY)
        current, swap, chats = _read_entry(agent.id, entry)
        chats.setdefault(MAIN, Chat(MAIN))
        chats[current] = replace(chats.get(current) or Chat(current), message_ids=tuple(context))
        had_messages = bool(swap) and isinstance(entry, dict) and entry.get("had_messages") is True
        return cls(agent.id, system_id, current, chats, swap, had_messages)

    @property
    def is_kept(self) -> bool:
        """Whether there is any chat beside the main one."""
        return len(self.chats) > 1

    def add(self, chat: Chat) -> ChatLists:
        """Adds a chat, or replaces the one with its id."""
        return replace(self, chats={**self.chats, chat.id: chat})

    def without_stale(self, turns: Sequence[HeardTurn]) -> ChatLists:
        """Returns the lists without those that are older than the noted `turns` say, if another program has written the
        metadata back as it had read it before a change: the context is that of the chat that spoke last.
        """
        spoken = [turn for turn in turns if turn.chat and turn.swap]
        known = [at for at, turn in enumerate(spoken) if turn.swap == self.swap]
        later = spoken[known[-1] + 1 :] if known else []
        if not later:
            return self
        current, context = later[-1].chat, self.chats[self.current].message_ids
        stale = {self.current, *(turn.chat for turn in later)} - {MAIN}
        chats = {chat.id: chat for chat in self.chats.values() if chat.id not in stale}
        chats[current] = replace(self.chats.get(current) or Chat(current), message_ids=context)
        return replace(self, current=current, swap=later[-1].swap, had_messages=False, chats=chats)

    def is_emptied(self, turns: Sequence[HeardTurn]) -> bool:
        """Returns whether somebody has removed all messages of the current chat, as a reset in Letta does. `turns` are
        the noted ones.
        """
        if not self.swap or self.chats[self.current].message_ids:
            return False
        return self.had_messages or any(
            turn.chat == self.current and turn.swap == self.swap and turn.kind == "ended" for turn in turns
        )

    def after_reset(self, *, deleted: bool) -> ChatLists:
        """Returns the lists if the current chat was emptied. `deleted`: the messages of all chats exist no more. The
        chats are still known, so that what is noted of one is not taken for another's.
        """
        if not deleted:
            return replace(self, had_messages=True)
        chats = {chat.id: replace(chat, message_ids=()) for chat in self.chats.values()}
        return replace(self, chats=chats, swap="", had_messages=True)

    def change_to(
        self, chat_id: str, agent: Agent, now: float, *, broken_off: bool, abandoned: str = ""
    ) -> AgentChange:
        """Returns the change of the agent that puts the chat into its context, and its present context among the lists.
        `broken_off`: the last turn of the present chat did not end. `abandoned`: the chat from which the new one parts,
        as its client took back what it has said there.
        """
        left = replace(self.chats[self.current], used=now, is_broken_off=broken_off)
        entered = replace(self.chats[chat_id], used=now)
        chats = {**self.chats, left.id: left, entered.id: entered}
        if abandoned in chats:
            chats[abandoned] = replace(chats[abandoned], used=max(0.0, now - _UNUSED))
        came_to_nothing = not left.message_ids and not self.had_messages
        if came_to_nothing and left.id not in (MAIN, chat_id):
            del chats[left.id]
        kept = _within_limits(chats, entered.id)
        entry: JsonObject = {
            "agent": self.agent_id,
            "swap": secrets.token_hex(4),
            "current": chat_id,
            "had_messages": bool(entered.message_ids),
            "chats": {chat.id: _entry_of(chat, with_ids=chat.id != chat_id) for chat in kept},
        }
        metadata = {**agent.metadata, METADATA_KEY: entry}
        ids = [self.system_id, *entered.message_ids]
        return AgentChange(message_ids=ids, metadata=metadata)


def swap_of(agent: Agent) -> str:
    """Returns what `ChatLists.of` says of the change by which the current chat came into the context, without the lists
    themselves, which may be long.
    """
    entry = agent.metadata.get(METADATA_KEY)
    if isinstance(entry, dict) and isinstance(entry.get("chats"), dict):
        entry = {**entry, "chats": {}}
    return _read_entry(agent.id, entry)[1]


def new_chat_id() -> str:
    return secrets.token_hex(4)


def change_without_chats(agent: Agent) -> AgentChange | None:
    """Returns the change that puts the main chat back into the context and removes the bridge's lists; None if there
    are none.
    """
    if not agent.has_chats:
        return None
    lists = ChatLists.of(agent)
    metadata = {key: value for key, value in agent.metadata.items() if key != METADATA_KEY}
    ids = [lists.system_id, *lists.chats[MAIN].message_ids] if lists.system_id else None
    return AgentChange(message_ids=ids, metadata=metadata)


def _within_limits(chats: Mapping[str, Chat], entered: str) -> list[Chat]:
    """Returns the chats that are kept, the last used first. The main chat and the one in context always are."""
    fixed = [chat for chat in chats.values() if chat.id in (MAIN, entered)]
    others = sorted((chat for chat in chats.values() if chat not in fixed), key=lambda chat: -chat.used)
    left = MOST_CHARACTERS - sum(map(_size, fixed))
    kept = fixed
    for chat in others[: MOST_CHATS - len(fixed)]:
        left -= _size(chat)
        if left < 0:
            break
        kept.append(chat)
    return kept


def _size(chat: Chat) -> int:
    return 23 * len(chat.message_ids) + 100


def _entry_of(chat: Chat, *, with_ids: bool) -> JsonObject:
    entry: dict[str, object] = {"used": int(chat.used)}
    if chat.client:
        entry["client"] = chat.client
    if chat.name:
        entry["name"] = chat.name
    if chat.is_broken_off:
        entry["broken_off"] = True
    if with_ids:
        entry["ids"] = " ".join(map(_short_id, chat.message_ids))
    return entry


def _read_entry(agent_id: str, entry: object) -> tuple[str, str, dict[str, Chat]]:
    """Returns the id of the current chat, the name of the change by which it came into the context, and all chats."""
    if not isinstance(entry, dict) or entry.get("agent") != agent_id:
        return MAIN, "", {}
    current, swap, rows = entry.get("current"), entry.get("swap"), entry.get("chats")
    if not isinstance(current, str) or not current or not isinstance(rows, dict):
        return MAIN, "", {}
    read = (_chat_from_entry(chat_id, row) for chat_id, row in rows.items())
    return current, swap if isinstance(swap, str) else "", {chat.id: chat for chat in read if chat is not None}


def _chat_from_entry(chat_id: str, row: object) -> Chat | None:
    if not isinstance(row, dict):
        return None
    client, name, ids, used = row.get("client", ""), row.get("name", ""), row.get("ids", ""), row.get("used", 0)
    if not (isinstance(client, str) and isinstance(name, str) and isinstance(ids, str)):
        return None
    if not isinstance(used, (int, float)):
        return None
    known = float(used) if 0 <= used < _LATEST else 0.0
    return Chat(chat_id, client, name, tuple(_long_ids(ids.split())), known, row.get("broken_off") is True)


def _short_id(message_id: str) -> str:
    """Returns the id of a message with 22 characters, if it has the form of Letta's ids."""
    digits = message_id.removeprefix(_PREFIX)
    try:
        number = UUID(digits)
    except ValueError:
        return message_id
    if f"{_PREFIX}{number}" != message_id:
        return message_id
    return base64.urlsafe_b64encode(number.bytes).decode().rstrip("=")


def _long_ids(ids: Iterable[str]) -> Iterable[str]:
    for one in ids:
        if not _SHORT.fullmatch(one):
            yield one
            continue
        digits = base64.urlsafe_b64decode(f"{one}==").hex()
        yield f"{_PREFIX}{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
