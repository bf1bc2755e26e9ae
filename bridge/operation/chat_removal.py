"""Removes the bridge's lists of an agent's chats: the main chat comes back into the agent's context."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from bridge.chats.lists import MAIN, ChatLists, change_without_chats
from bridge.interception.close_held import find_held_request, names_of_own_tools
from bridge.interception.runs_under_way import wait_for_runs
from bridge.letta.gateway import Agent, Gateway, StoredMessage
from bridge.operation.wording import list_names, number_with_noun


@dataclass(frozen=True, slots=True)
class ChatRemoval:
    """What removing an agent's chats means, for the operator. `changes`: whether anything is removed now."""

    sentences: tuple[str, ...]
    changes: bool = True


def remove_chat_lists(gateway: Gateway, agent: Agent) -> Agent:
    """Puts the main chat back into the context of the agent, which the caller has locked, and removes the lists. Waits
    for a run that a turn left behind: at its end, it would write its own chat into the context. Changes nothing while
    the agent's owner has to decide on a call in another chat: nobody could, if that left the context. Returns the
    agent as it is then.
    """
    if not agent.has_chats:
        return agent
    if ChatLists.of(agent).current != MAIN:
        for _ in wait_for_runs(gateway, agent.id, threading.Event()):
            pass
        agent = gateway.agent(agent.id)
    change, request = change_without_chats(agent), _request_to_be_lost(gateway, agent)
    if change is None or (request is not None and names_of_own_tools(agent, request)):
        return agent
    return gateway.change_agent(agent.id, change)


def plan_chat_removal(gateway: Gateway, agent: Agent) -> ChatRemoval | None:
    """Plans what `remove_chat_lists` will do, None if there are no lists."""
    if not agent.has_chats:
        return None
    request, lists = _request_to_be_lost(gateway, agent), ChatLists.of(agent)
    own = names_of_own_tools(agent, request) if request is not None else []
    if own:
        sentence = f"The chat in its context waits for somebody to approve the agent's own tool {own[0]!r:.80}."
        return ChatRemoval((sentence, "Its chats stay until that is decided in Letta."), changes=False)
    main = "stays in" if lists.current == MAIN else "comes back into"
    others = number_with_noun(len(lists.chats) - 1, "other chat")
    sentences = [
        f"Its main chat {main} its context, and the bridge's lists of {others} are removed. All messages stay in its"
        " recall. With BRIDGE_CHATS=each, a chat that goes on begins a new context."
    ]
    if request is not None:
        names = list_names([call.name for call in request.calls])
        sentences.append(f"The chat in its context waits for the client's result of {names}. The call gets none.")
    return ChatRemoval(tuple(sentences))


def _request_to_be_lost(gateway: Gateway, agent: Agent) -> StoredMessage | None:
    """Fetches the approval request that leaves the context with its chat. The main chat stays."""
    return None if ChatLists.of(agent).current == MAIN else find_held_request(gateway, agent)
