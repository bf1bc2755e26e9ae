"""Names chats: by digests of what their clients call them, and for the notes of their open calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.chats.lists import MAIN, ChatLists
from bridge.fingerprints import digest_bytes
from bridge.letta.gateway import Agent

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


def context_of_session(agent: Agent, client: str, session: str) -> tuple[str, Sequence[str]]:
    """Returns where the open calls are noted of the chat that a client of Letta's own API means by a session, and the
    ids of all messages in its context. Where the agent has no such chat, it is the main one.
    """
    lists, name = ChatLists.of(agent), name_of_session(session)
    system = agent.message_ids[:1]
    named = [chat for chat in lists.chats.values() if name and (chat.client, chat.name) == (client, name)]
    if named:
        return place_of_chat(agent.id, name), (*system, *max(named, key=lambda chat: chat.used).message_ids)
    return agent.id, (*system, *lists.chats[MAIN].message_ids)
