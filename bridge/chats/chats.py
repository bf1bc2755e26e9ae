"""Gives each chat of an agent a context of its own: before a turn, puts the messages of its chat into the agent's
context, with one change of the agent. A chat that goes on in the next turn costs nothing.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.chats.lists import MAIN, Chat, ChatLists, change_without_chats, new_chat_id, swap_of
from bridge.chats.names import Speaker, context_of_session, name_of_session, place_of_chat
from bridge.chats.paths import is_whole, paths_of_chats
from bridge.chats.recognise import FoundChat, find_chat, find_chat_of_attempt
from bridge.chats.stored import calls_by_message, turns_of_chat
from bridge.config import Settings
from bridge.errors import BridgeError, InvalidRequest
from bridge.heard.hearing import LOOK_BACK, HeardChat
from bridge.heard.records import HeardTurn, HeardTurns
from bridge.interception.close_held import find_held_request, names_of_own_tools, own_tool_error
from bridge.interception.method import is_of_turn
from bridge.letta.gateway import Agent, AgentChange, Gateway, StoredMessage
from bridge.store.port import Store
from bridge.sync.ownership import is_ours
from bridge.turn import ChatsMode, Turn

log = logging.getLogger(__name__)

# What is noted of the chats of one agent has this name, so that it is never taken for what is noted of all together.
_LISTENER = "{agent_id}/chats"


@dataclass(frozen=True, slots=True)
class EnteredChat:
    """The agent with a turn's chat in its context. `heard`: what the chat has heard, None for the main chat. `change`:
    how it came into the context, "" if it was there. `previous_turn_ended`: of this chat.
    """

    agent: Agent
    heard: HeardChat | None
    previous_turn_ended: bool
    change: str = ""


class Chats:
    """Knows the chats of all agents. BRIDGE_CHATS, and the option `chats` of a key, say which agents have several."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def has_own_context(self, agent: Agent, turn: Turn) -> bool:
        """Returns whether the turn is of a chat with a context of its own, not of the main chat."""
        return self._keeps_apart(agent, turn.chats) and bool(turn.transcript or _name_of(turn) or turn.follows)

    def context_of_session(self, agent: Agent, speaker: Speaker) -> tuple[str, Sequence[str]]:
        """Returns where the open calls of a session of Letta's own API are noted, and the ids in its context."""
        return context_of_session(agent, speaker, is_apart=self._keeps_apart(agent, speaker.chats))

    def _keeps_apart(self, agent: Agent, mode: ChatsMode | None) -> bool:
        """Returns whether the agent's chats have contexts of their own. `mode`: what the client's key says of that."""
        is_one = self._mode(agent, mode) == "one"
        # With message_buffer_autoclear, Letta keeps no context between two messages.
        return not (is_one or agent.clears_context or not agent.message_ids)

    def _mode(self, agent: Agent, mode: ChatsMode | None) -> ChatsMode:
        return mode or self._settings.chats.for_agent(agent.id, agent.name)

    def place_of_calls(self, agent: Agent, turn: Turn) -> str:
        """Returns the name under which the open calls of the turn's chat are noted (see locks/open_calls.py); "" where
        no other turn needs to know them, because they leave the agent free for all other chats.
        """
        if not self.has_own_context(agent, turn):
            return agent.id
        return place_of_chat(agent.id, _name_of(turn)) if turn.answers_all_calls else ""

    def enter(self, gateway: Gateway, agent: Agent, turn: Turn, *, previous_turn_ended: bool) -> EnteredChat:
        """Puts the turn's chat into the agent's context. The agent must be locked and have no run under way."""
        if not self.has_own_context(agent, turn):
            return self.enter_main(gateway, agent, previous_turn_ended=previous_turn_ended)
        noted = self._noted_turns(agent)
        lists = _lists_now(gateway, agent, noted)
        found = self._find(gateway, agent, lists, turn, noted)
        chat, path, change = _chat_for(found, lists, turn, _name_of(turn))
        before = lists.chats[found.chat_id] if found is not None else None
        # A chat of another name is not abandoned: its client goes on there, too.
        abandoned = before.id if before is not None and change == "parted" and chat.name == before.name else ""
        entered = self._put(gateway, agent, lists.add(chat), chat.id, previous_turn_ended, abandoned)
        swap = swap_of(entered.agent)
        begins = found.began_after if found is not None and found.began_after else entered.agent.message_ids[-1]
        heard = HeardChat(_listener(agent), chat.id, begins, path, swap)
        return replace(entered, heard=heard, change=change if entered.change else "")

    def enter_main(self, gateway: Gateway, agent: Agent, *, previous_turn_ended: bool) -> EnteredChat:
        """Puts the main chat into the agent's context."""
        if not agent.has_chats:
            return EnteredChat(agent, None, previous_turn_ended)
        lists = _lists_now(gateway, agent, self._noted_turns(agent))
        return self._put(gateway, agent, lists, MAIN, previous_turn_ended)

    def has_main_in_context(self, agent: Agent) -> bool:
        return ChatLists.of(agent).current == MAIN

    def forget_deleted(self, gateway: Gateway, agent: Agent) -> None:
        """Removes the agent's lists if the messages of its chats were deleted."""
        change = change_without_chats(agent)
        if change is not None and _are_deleted(gateway, agent, ChatLists.of(agent)):
            gateway.change_agent(agent.id, change)

    def leave(self, gateway: Gateway, agent: Agent, turn: Turn) -> None:
        """Puts the main chat back after a turn that ended well, if BRIDGE_CHATS says so. Only logs a failure, because
        the agent has answered: the next turn of the main chat puts it back, too.
        """
        if self._mode(agent, turn.chats) != "each+main" or not self.has_own_context(agent, turn):
            return
        try:
            self.enter_main(gateway, gateway.agent(agent.id), previous_turn_ended=True)
        except BridgeError as fault:
            log.warning("the main chat of an agent could not be put back: %s", fault.message)

    def chat_of_aside(self, agent: Agent, turn: Turn) -> HeardChat | None:
        """Returns the chat that a turn aside is about, as far as the notes tell; None for the main chat."""
        if not self.has_own_context(agent, turn):
            return None
        lists = ChatLists.of(agent)
        paths = paths_of_chats(self._noted_turns(agent), lists.system_id)
        found = find_chat(turn, _name_of(turn), _chats_of_client(lists, turn), paths, lists.system_id)
        return HeardChat(_listener(agent), found.chat_id if found else "", "", found.path if found else ())

    def note_without_agent(self, agent: Agent, turn: Turn) -> None:
        """Notes that the turn, in which the agent was not asked, stands in its chat, so that others can follow it."""
        chat = self.chat_of_aside(agent, turn)
        if chat is not None and chat.id:
            after = chat.path[-1].turn if chat.path else ""
            noted = HeardTurn("aside", chat=chat.id, turn=turn.id, after=after)
            HeardTurns(self._store, chat.listener).note(noted)

    # --- which chat it is -----------------------------------------------------------------------------

    def _find(
        self, gateway: Gateway, agent: Agent, lists: ChatLists, turn: Turn, noted: Sequence[HeardTurn]
    ) -> FoundChat | None:
        """Returns the chat that the turn goes on with, None if it begins a new one."""
        chats, name = _chats_of_client(lists, turn), _name_of(turn)
        if not turn.transcript and not turn.follows:
            named = [chat for chat in chats.values() if name and chat.name == name]
            return FoundChat(max(named, key=lambda chat: chat.used).id, ()) if named else None
        paths = paths_of_chats(noted, lists.system_id)
        if turn.repeated:
            of_attempt = find_chat_of_attempt(turn, chats, paths) or _chat_with_message_of(
                turn, chats, paths, self._read_stored(gateway, agent), lists.system_id
            )
            if of_attempt is not None:
                return of_attempt
        found = find_chat(turn, name, chats, paths, lists.system_id) or _chat_that_waits(lists, chats, turn, paths)
        if found is None:
            found = self._find_by_stored_messages(gateway, agent, lists, turn, paths)
        if turn.follows and (found is None or _ids_up_to(lists.chats[found.chat_id], lists, found.parts_after) is None):
            raise InvalidRequest(
                "The conversation of the response that `previous_response_id` names is not known any more. Leave the"
                " field out and send the whole conversation.",
                param="previous_response_id",
                code="previous_response_not_newest",
            )
        return found

    def _noted_turns(self, agent: Agent) -> list[HeardTurn]:
        """Returns the noted turns of all chats of the agent, the oldest first."""
        return [*HeardTurns(self._store, _listener(agent)).newest_first()][::-1]

    def _find_by_stored_messages(
        self, gateway: Gateway, agent: Agent, lists: ChatLists, turn: Turn, paths: dict[str, list[HeardTurn]]
    ) -> FoundChat | None:
        """Finds the chat by the agent's stored messages, if there are chats of which the notes are lost."""
        chats = _chats_of_client(lists, turn)
        root = lists.system_id
        lost = [chat for chat in chats.values() if chat.message_ids and not is_whole(paths.get(chat.id, ()), root)]
        has_answers = turn.follows or any(message.role == "assistant" for message in turn.transcript)
        if not (lost and has_answers):
            return None
        rows: defaultdict[str, list[StoredMessage]] = defaultdict(list)
        for row in self._read_stored(gateway, agent):
            rows[row.id].append(row)
        calls = calls_by_message(turn.call_ids, sorted(turn.known_calls))
        read = {chat.id: turns_of_chat(chat, lists.system_id, rows, calls) for chat in lost}
        found = find_chat(turn, _name_of(turn), chats, read, root)
        # Stored turns are not those of the notes: what the chat has heard is then read from the server, too.
        return None if found is None else replace(found, path=())

    def _read_stored(self, gateway: Gateway, agent: Agent) -> Sequence[StoredMessage]:
        return gateway.newest_messages(agent.id, LOOK_BACK, including=agent.message_ids[-1])

    # --- the change of the agent ----------------------------------------------------------------------

    def _put(
        self,
        gateway: Gateway,
        agent: Agent,
        lists: ChatLists,
        chat_id: str,
        previous_turn_ended: bool,
        abandoned: str = "",
    ) -> EnteredChat:
        """Puts the chat into the context unless it is there. Raises LettaConflict while the agent's owner has to decide
        on a call in the present chat: nobody could, if another chat were in the context.
        """
        is_corrected = lists.swap != swap_of(agent)
        if (chat_id == lists.current and not is_corrected) or not lists.system_id:
            return EnteredChat(agent, None, previous_turn_ended)
        _check_own_calls(gateway, agent)
        ended = not lists.chats[chat_id].is_broken_off
        change = lists.change_to(chat_id, agent, time.time(), broken_off=not previous_turn_ended, abandoned=abandoned)
        agent = gateway.change_agent(agent.id, _keeping_parallel_calls(gateway, agent, change))
        return EnteredChat(agent, None, ended, "back")


def _lists_now(gateway: Gateway, agent: Agent, noted: Sequence[HeardTurn]) -> ChatLists:
    """Returns the agent's lists without those that another program has made wrong since they were written."""
    lists = ChatLists.of(agent).without_stale(noted)
    if not lists.swap or lists.chats[lists.current].message_ids:
        return lists
    if gateway.features().deletes_messages_at_reset and _are_deleted(gateway, agent, lists):
        return lists.after_reset(deleted=True)
    return lists.after_reset(deleted=False) if lists.is_emptied(noted) else lists


def _are_deleted(gateway: Gateway, agent: Agent, lists: ChatLists) -> bool:
    """Returns whether messages are listed, and none of them exists any more."""
    ids = {message_id for chat in lists.chats.values() for message_id in chat.message_ids}
    return bool(ids) and ids.isdisjoint(row.id for row in gateway.newest_messages(agent.id, LOOK_BACK))


def _chat_for(
    found: FoundChat | None, lists: ChatLists, turn: Turn, name: str
) -> tuple[Chat, tuple[HeardTurn, ...], str]:
    """Returns the turn's chat, what it has heard, and how it comes about. A transcript that parts from a chat has one
    of its own, which begins with what both have; so has one that its client gives another name.
    """
    new = Chat(new_chat_id(), turn.client, name)
    if found is None:
        return new, (), "new"
    chat = lists.chats[found.chat_id]
    ids = _ids_up_to(chat, lists, found.parts_after)
    if ids is None:  # Letta has summed up since what both have
        return new, (), "new"
    has_other_name = name not in ("", chat.name) and chat.name != "" and not _answers_open_call(chat, turn)
    # Somebody may have removed all messages of the agent: then it knows nothing of what is noted.
    path = found.path if ids else ()
    if ids == chat.message_ids and (chat.id == MAIN or not has_other_name):
        return replace(chat, name=name or chat.name), path, "back"
    return replace(new, message_ids=ids, name=name or chat.name), path, "parted"


def _ids_up_to(chat: Chat, lists: ChatLists, last: str | None) -> tuple[str, ...] | None:
    """Returns the chat's messages up to the one with the id `last`, None if it is not in the context any more."""
    if last is None:
        return chat.message_ids
    if last == lists.system_id:
        return ()
    return chat.message_ids[: chat.message_ids.index(last) + 1] if last in chat.message_ids else None


def _chats_of_client(lists: ChatLists, turn: Turn) -> dict[str, Chat]:
    """Returns the chats that the client began, apart from the main one."""
    return {chat.id: chat for chat in lists.chats.values() if chat.id != MAIN and chat.client == turn.client}


def _chat_with_message_of(
    turn: Turn,
    chats: dict[str, Chat],
    paths: dict[str, list[HeardTurn]],
    rows: Sequence[StoredMessage],
    root: str,
) -> FoundChat | None:
    """Returns the chat that has a message of an earlier attempt at this turn, which was killed before it was noted."""
    sent = {row.id for row in rows if is_of_turn(row.otid, turn.id)}
    chat = next((chat for chat in chats.values() if not sent.isdisjoint(chat.message_ids)), None)
    if chat is None:
        return None
    first = next(at for at, message_id in enumerate(chat.message_ids) if message_id in sent)
    before = chat.message_ids[first - 1] if first else root
    return FoundChat(chat.id, tuple(paths.get(chat.id, ())), began_after=before)


def _chat_that_waits(
    lists: ChatLists, chats: dict[str, Chat], turn: Turn, paths: dict[str, list[HeardTurn]]
) -> FoundChat | None:
    """Returns the chat with the call whose result the turn brings, if its last message waits for that. It may be the
    main chat, in which the agent made the call before it had others.
    """
    candidates = [*chats.values(), lists.chats[MAIN]]
    waiting = next((chat for chat in candidates if _answers_open_call(chat, turn)), None)
    return None if waiting is None else FoundChat(waiting.id, tuple(paths.get(waiting.id, ())))


def _answers_open_call(chat: Chat, turn: Turn) -> bool:
    places = (turn.call_ids.message_and_index(result.call_id) for result in turn.new_input.results)
    last = chat.message_ids[-1:]
    return any(place is not None and (place[0],) == last for place in places)


def _check_own_calls(gateway: Gateway, agent: Agent) -> None:
    """Raises LettaConflict if the agent waits for its owner. Reads its messages only if a tool of its own may wait."""
    own = {tool.name for tool in agent.tools if not is_ours(tool)}
    if not any(rule.get("type") == "requires_approval" and rule.get("tool_name") in own for rule in agent.rules):
        return
    request = find_held_request(gateway, agent)
    names = names_of_own_tools(agent, request) if request is not None else []
    if names:
        raise own_tool_error(names[0])


def _keeping_parallel_calls(gateway: Gateway, agent: Agent, change: AgentChange) -> AgentChange:
    """Names the present value where every change would switch it off: to look it up would be a call more."""
    named = gateway.features().resets_parallel_calls
    return replace(change, parallel_calls=agent.parallel_calls) if named else change


def _name_of(turn: Turn) -> str:
    return name_of_session(turn.session or turn.cache_key)


def _listener(agent: Agent) -> str:
    return _LISTENER.format(agent_id=agent.id)
