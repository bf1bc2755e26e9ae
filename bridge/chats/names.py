"""Names chats: by digests of what their clients call them, and for the notes of their open calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bridge.chats.lists import MAIN, ChatLists
from bridge.fingerprints import digest_bytes
from bridge.letta.gateway import Agent
from bridge.turn import ChatsMode

# The session of messages to an agent itself, in Letta's own API (see dialects/letta/request.py).
DEFAULT_SESSION = "letta:default"


def name_of_session(session: str) -> str:
    """Returns a digest of the client's name for its chat, "" if it has none. An agent's default conversation in Letta's
    own API is its main chat.
    """
    return digest_bytes(session.encode(errors="surrogatepass")) if session not in ("", DEFAULT_SESSION) else ""


def place_of_chat(agent_id: str, name: str) -> str:
    """Returns the name under which the open calls of a named chat are noted, for "" those of the main chat."""
    return f"{agent_id}/{name}" if name else agent_id


class Speaker(NamedTuple):
    """Who speaks in a session of Letta's own API: the names of the key and of the session, and how the key says that
    the agent's chats are kept; None if it does not.
    """

    client: str
    session: str = DEFAULT_SESSION
    chats: ChatsMode | None = None


def context_of_session(agent: Agent, speaker: Speaker, *, is_apart: bool) -> tuple[str, Sequence[str]]:
    """Returns where the open calls are noted of the chat that a client means by its session, and the ids of all
    messages in its context. `is_apart`: a chat with a name has a context of its own, which is empty before its first
    turn. Otherwise a session without a chat is the main one.
    """
    lists, name = ChatLists.of(agent), name_of_session(speaker.session)
    system = agent.message_ids[:1]
    named = [chat for chat in lists.chats.values() if name and (chat.client, chat.name) == (speaker.client, name)]
    if named:
        return place_of_chat(agent.id, name), (*system, *max(named, key=lambda chat: chat.used).message_ids)
    if name and is_apart:
        return place_of_chat(agent.id, name), system
    return agent.id, (*system, *lists.chats[MAIN].message_ids)
