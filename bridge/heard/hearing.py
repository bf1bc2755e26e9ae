"""Finds what an agent has not heard of the transcript of a turn, and notes what it heard and said in the turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bridge.fingerprints import Passage, digests_of_beginnings, message_digest
from bridge.heard.alignment import REPLACED, Alignment
from bridge.heard.records import HeardTurn, HeardTurns, TurnKind
from bridge.heard.stored import StoredTalk
from bridge.heard.telling import tell
from bridge.letta.gateway import Agent, Gateway
from bridge.store.port import Store, Write
from bridge.turn import (
    Message,
    NewInput,
    Text,
    ToolCall,
    ToolResult,
    ToolsOffered,
    Turn,
    TurnEvent,
    UserMessage,
    joined_text,
)

# How many of the agent's stored messages are searched for what the notes do not have.
LOOK_BACK = 1_000


@dataclass(frozen=True, slots=True)
class HeardChat:
    """A chat with a context of its own. `listener`: under which name its agent's chats are noted. `begins`: the id of
    the last message in its context before the turn. `path`: what it has heard and said, the oldest turn first. `swap`
    names the change by which it came into the context.
    """

    listener: str
    id: str
    begins: str
    path: Sequence[HeardTurn]
    swap: str = ""


class Hearing:
    """One turn: what the agent has to be told, and what is noted of the turn. `limit` is BRIDGE_HISTORY_LIMIT; with 0,
    only what comes after the last assistant message is new, and nothing is noted.
    """

    def __init__(self, store: Store, turn: Turn, limit: int) -> None:
        self.told_messages = 0
        self._store = store
        self._turn = turn
        self._limit = limit
        self._notes: HeardTurns | None = None
        self._chat: HeardChat | None = None
        self._new_input = turn.new_input
        self._history: list[str] = []
        self._calls: list[str] = []
        self._transcript = ""
        after_last = len(turn.transcript)
        while after_last and turn.transcript[after_last - 1].role != "assistant":
            after_last -= 1
        self._older, self._newer = turn.transcript[:after_last], turn.transcript[after_last:]

    def set_listener(self, agent_id: str, chat: HeardChat | None = None) -> None:
        """Says for which agent, and for which of its chats, the turn is noted; without that, nothing is."""
        self._chat = chat
        if self._turn.transcript and (chat is not None or self._limit):
            self._notes = HeardTurns(self._store, chat.listener if chat else agent_id)

    # --- what the agent has not heard -----------------------------------------------------------------

    def read_new_input(
        self, gateway: Gateway, agent: Agent, chat: HeardChat | None = None, *, previous_turn_ended: bool = True
    ) -> NewInput:
        """Returns the turn's new input with all that the agent has not heard, before the user's newest message. Reads
        the agent's stored messages only if the notes do not have everything. They may lack the previous turn if that
        did not end, because its worker was killed.
        """
        self.set_listener(agent.id, chat)
        if self._notes is None or not self._limit:
            return self._turn.new_input
        if not self._older and len(self._newer) == 1 and self._newer[0].role == "user":
            self._transcript = digests_of_beginnings(self._newer)[-1]
            return self._turn.new_input  # there is nothing that the agent could have heard, or not heard, before
        older = Alignment(self._older, self._newer, self._turn.call_ids)
        self._transcript = older.transcript
        heard_turns = self._notes.newest_first() if chat is None else reversed(chat.path)
        older.match_turns(heard_turns, self._notes.history)
        heard = self._heard_before(older)
        users = [one for one in self._newer[:-1] if one.role == "user"]
        attempted = [one for one in users if not previous_turn_ended or message_digest(one) in older.attempted_since]
        restored = {at for at in older.restored if older.digests[at] in older.attempted}
        if older.unmatched or attempted or restored:
            stored = self._read_stored(gateway, agent)
            stored.match(older)
            heard += [message for message in attempted if stored.has_told_since(message)]
            older.restored -= {at for at in restored if stored.has_told_since(older.messages[at])}
        self._new_input = self._add_unheard(older, heard)
        return self._new_input

    def _heard_before(self, older: Alignment) -> list[Message]:
        """Returns the newer messages that the agent has heard, never the last: to repeat it is to ask again. Codex
        sends the user's old messages again, before a summary that it asked for.
        """
        since = older.told_since
        asides = (one.role == "user" and older.is_answer_aside(one) for one in self._newer)
        summed_up = max((at for at, is_aside in enumerate(asides) if is_aside), default=0)

        def has_heard(at: int, message: Message) -> bool:
            digest = message_digest(message)
            return (at < summed_up and digest in older.told) or digest in since or older.is_summary(message)

        users = [(at, message) for at, message in enumerate(self._newer[:-1]) if message.role == "user"]
        return [message for at, message in users if has_heard(at, message)]

    def _read_stored(self, gateway: Gateway, agent: Agent) -> StoredTalk:
        if len(agent.message_ids) <= 1:  # only the system prompt: a stored message is of a failed run, or was removed
            return StoredTalk(agent, (), self._turn.call_ids)
        rows = gateway.newest_messages(agent.id, LOOK_BACK, including=agent.message_ids[-1])
        return StoredTalk(agent, rows, self._turn.call_ids, context_only=agent.has_chats)

    def _add_unheard(self, older: Alignment, heard: Sequence[Message]) -> NewInput:
        new_input = self._turn.new_input
        late = {at for at in older.unmatched if self._is_own_result(older, older.messages[at])}
        unheard = [older.messages[at] for at in sorted(older.unmatched | older.restored) if at not in late]
        foreign = [message for message in self._newer if message.role == "tool" and self._is_foreign(older, message)]
        ids = {message.tool_call_id for message in foreign}
        history = tell([*unheard, *foreign], self._limit)
        self.told_messages = len(unheard) + len(foreign)
        standing = sorted({*older.standing, *older.unmatched, *older.restored} - late)
        self._history = [*(older.digests[at] for at in standing), *map(message_digest, foreign)]
        self._history += [REPLACED + digest for digest in sorted(older.replaced)] if self._history else []
        self._calls = older.found_calls
        said = _without(new_input.user_messages, heard)
        results = [result for result in new_input.results if result.call_id not in ids]
        results = [*_results_of(older.messages, sorted(late)), *results]
        return replace(
            new_input,
            unheard=history,
            user_messages=tuple(said),
            results=tuple(results),
            opens_conversation=new_input.opens_conversation or self._opens_conversation(older),
        )

    def _opens_conversation(self, older: Alignment) -> bool:
        """Returns whether the transcript has no answer of the agent, and its other answers are new to the agent."""
        answers = {at for at, message in enumerate(older.messages) if message.role == "assistant"}
        return bool(answers) and answers <= older.unmatched and not self._turn.follows

    def _is_own_result(self, older: Alignment, message: Message) -> bool:
        return message.role == "tool" and older.is_own_call(message.tool_call_id)

    def _is_foreign(self, older: Alignment, result: Message) -> bool:
        """Returns whether the result is of a call that this agent never made. Without its call, it is told only beside
        a user's message: alone, it is refused.
        """
        call_id, ids = result.tool_call_id, self._turn.call_ids
        if older.has_call(call_id):
            return not older.is_own_call(call_id)
        has_user = any(message.role == "user" for message in self._newer)
        return has_user and ids.message_and_index(call_id) is None and not ids.is_ending_id(call_id)

    # --- what is noted --------------------------------------------------------------------------------

    def note(self, events: Iterator[TurnEvent], write: Write | None = None) -> Iterator[TurnEvent]:
        """Yields the events of the turn as the client gets them, and notes at the end what the agent heard and said.
        `write` has the changes of the store made; without it, they are made at that moment.
        """
        text: list[Text] = []
        calls: list[str] = []
        began = False
        kind: TurnKind = "broken off"
        try:
            for event in events:
                began = began or isinstance(event, ToolsOffered)
                if isinstance(event, Text):
                    text.append(event)
                elif isinstance(event, ToolCall):
                    calls.append(event.id)
                yield event
            kind = self._kind_of_good_end()
        finally:
            if self._notes is not None and began:
                said = Passage.of(joined_text(text))
                noted = self._noted_turn(kind, said if said.length else None, calls)
                self._notes.note(noted, () if kind in ("aside", "summary") else self._history, write)

    def _kind_of_good_end(self) -> TurnKind:
        if not self._turn.aside:
            return "ended"
        rule = self._turn.side_rule
        # A client may sum up results that the agent waits for, and never send them: then the summary has to be told.
        return "summary" if rule is not None and rule.summary and not self._turn.new_input.results else "aside"

    def _noted_turn(self, kind: TurnKind, said: Passage | None, calls: Sequence[str]) -> HeardTurn:
        chat = self._chat
        of_chat = ("", "", "", "", "")
        if chat is not None and chat.id:
            of_chat = (chat.id, chat.begins, self._turn.id, chat.path[-1].turn if chat.path else "", chat.swap)
        if kind in ("aside", "summary"):
            return HeardTurn(kind, (), (), said, (), "", "", *of_chat)
        told = [message_digest(message) for message in self._newer if message.role == "user"]
        results = [result.call_id for result in self._new_input.results]
        # The calls of a chat's turn stand for its place, so that no earlier ones may be among them.
        calls = tuple(calls) if chat is not None else (*self._calls, *calls)
        return HeardTurn(kind, tuple(told), tuple(results), said, calls, "", self._transcript, *of_chat)


def _without(said: Sequence[UserMessage], heard: Sequence[Message]) -> list[UserMessage]:
    """Returns the user's messages without those that the agent has heard, never without the last."""
    known = Counter(UserMessage(message.text, message.images) for message in heard)
    left = []
    for message in said[:-1]:
        if known[message] > 0:
            known[message] -= 1
        else:
            left.append(message)
    return [*left, *said[-1:]]


def _results_of(messages: Sequence[Message], places: Sequence[int]) -> Iterator[ToolResult]:
    """Yields the tools' results at these places, with the names and arguments of their calls."""
    calls = {call.id: call for message in messages for call in message.tool_calls}
    for result in map(messages.__getitem__, places):
        call = calls[result.tool_call_id]
        yield ToolResult(call.id, result.text, result.is_error, call.name, call.arguments)
