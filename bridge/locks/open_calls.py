"""Notes in the store which calls of an agent are open: a client runs the tool, and the agent waits for the result.

The turn is over then, but a turn of another conversation may have to wait. No call is noted whose result never comes.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bridge.errors import Busy, CallsUnanswered, InvalidRequest, RequestConflict, StoreUnavailable
from bridge.fingerprints import MOST_CALLS, ConversationMark, goes_on, mark_conversation
from bridge.locks.call_clients import CallClients
from bridge.store.port import Change, Put, Remove, Store, Write
from bridge.turn import CallIds, ToolCall, Turn
from bridge.values import ToolWait

log = logging.getLogger(__name__)

# A waiting turn looks so often, in seconds, whether the calls are still open.
CHECK_INTERVAL = 0.1
# Letta's own words, which its programs look for.
_UNANSWERED = (
    "CONFLICT: Cannot send a new message: The agent is waiting for approval on a tool call. Please approve or deny the"
    " pending request before continuing."
)


@dataclass(frozen=True, slots=True)
class _Note:
    """The open calls of an agent: those of `mark`, which the turn with the id `turn_id` made."""

    mark: ConversationMark
    turn_id: str


class OpenCalls:
    """Knows the open calls of each agent, or of each of its chats. `place` in the methods is an agent's id, or a name
    for one of its chats; "" for a chat of which no other turn needs to know the open calls. `wait` is BRIDGE_TOOL_WAIT:
    an open call is ignored after so many seconds, and with 0 none is noted. `final_tools` is BRIDGE_FINAL_TOOLS:
    clients often send no result of these.
    """

    def __init__(self, store: Store, wait: ToolWait, final_tools: Collection[str] = ()) -> None:
        self._store = store
        self._wait = wait
        self._final_tools = final_tools
        self.clients = CallClients(store)

    def find_calls_to_wait_for(self, place: str, turn: Turn) -> str | None:
        """Returns the note of another conversation's open calls, None if the turn need not wait for any."""
        if not (self._wait.seconds and place):
            return None
        noted = self._store.get(_store_key(place))
        note = None if noted is None else _note_from_text(noted)
        if note is None or _belongs_to(turn, note):
            return None
        if self._wait.refuse:
            raise RequestConflict(
                "The agent waits for another client's tool result (BRIDGE_TOOL_WAIT). Try again soon.",
                code="tool_result_pending",
                retry_after=5,
            )
        return noted

    def find_refusal(self, place: str, turn: Turn) -> CallsUnanswered | InvalidRequest | None:
        """Returns the refusal of a turn that does not answer the open calls of its conversation although it has to, or
        that answers calls of another client. For such a client they look like calls that were never made.
        """
        refusal = self._find_missing_answers(place, turn)
        if refusal is not None:
            return refusal
        others = self.clients.calls_of_others(turn, (result.call_id for result in turn.new_input.results))
        return InvalidRequest.no_pending_call(others) if others else None

    def _find_missing_answers(self, place: str, turn: Turn) -> CallsUnanswered | InvalidRequest | None:
        """Returns the refusal of a turn that has to answer all open calls of its conversation, and does not. None if it
        may run: also after `wait` seconds, as a call of a client that does not come back must not hold the agent.
        """
        if not (turn.answers_all_calls and self._wait.seconds and place):
            return None
        noted = self._store.get(_store_key(place))
        note = None if noted is None else _note_from_text(noted)
        if note is None or (note.mark.client, note.mark.session) != (turn.client, turn.session):
            return None
        calls, answered = note.mark.calls, {result.call_id for result in turn.new_input.results}
        is_complete = answered == {*calls} if len(calls) < MOST_CALLS else answered >= {*calls}
        if is_complete or (turn.repeated and note.turn_id == turn.id):
            return None
        if not answered:
            request_id, _ = turn.call_ids.message_and_index(calls[0]) or ("", 0)
            return CallsUnanswered(_UNANSWERED, param=request_id)
        return InvalidRequest(
            f"Invalid tool call IDs. Expected '{[*calls]}', but received '{sorted(answered)}'.",
            param="messages",
            code="invalid_tool_call_ids",
        )

    def open_request(self, place: str, call_ids: CallIds) -> tuple[tuple[str, str], str] | None:
        """Returns whose the agent's open calls are, by client and session, and the id of the message that has them.
        None if no calls are open.
        """
        noted = self._store.get(_store_key(place)) if self._wait.seconds else None
        note = None if noted is None else _note_from_text(noted)
        named = call_ids.message_and_index(note.mark.calls[-1]) if note and note.mark.calls else None
        return ((note.mark.client, note.mark.session), named[0]) if note and named else None

    def wait_until_closed(self, place: str, noted: str, deadline: float, gone: threading.Event) -> None:
        """Waits until the agent's note is not `noted`, or `gone`. Raises Busy at `deadline`, by `time.monotonic`."""
        while self._store.get(_store_key(place)) == noted:
            if time.monotonic() >= deadline:
                raise Busy("The agent waits for another client's tool result (BRIDGE_TOOL_WAIT).", retry_after=5)
            if gone.wait(CHECK_INTERVAL):
                return

    def note(self, place: str, turn: Turn, calls: Sequence[ToolCall], write: Write | None = None) -> None:
        """Notes whose the calls of the turn are, and those whose results will come, or that there are none. `write` has
        the changes made; without it, they are made now. Only logs a fault of the store, because the agent has answered.
        """
        open_calls = [call.id for call in calls if turn.answers_all_calls or not self._is_the_answer(call, turn)]
        try:
            (write or self._store.change)([*self.clients.notes(turn, calls), *self._notes(place, turn, open_calls)])
        except StoreUnavailable as fault:
            log.warning("the open calls of an agent could not be noted: %s", fault.message)

    def _notes(self, place: str, turn: Turn, open_calls: Sequence[str]) -> list[Change]:
        """Returns the change that notes the agent's open calls, none if the settings tell no turn to wait for them."""
        if not (self._wait.seconds and place):
            return []
        if not open_calls:
            return [Remove(_store_key(place))]
        note = _Note(mark_conversation(turn, open_calls), turn.id)
        return [Put(_store_key(place), _text_from_note(note), self._wait.seconds)]

    def forget(self, place: str) -> None:
        """Removes the note of the agent's open calls, because the operator closed them."""
        self._store.remove(_store_key(place))

    def _is_the_answer(self, call: ToolCall, turn: Turn) -> bool:
        """Returns whether the client reads the call as the answer itself and mostly sends no result of it: the call
        ends a task, or the request left the model no other choice, as libraries do for structured output.
        """
        choice, offered = turn.tool_choice, [tool.name for tool in turn.tools]
        only_choice = choice.name if choice.mode == "function" else None
        if choice.mode == "required" and len(offered) == 1:
            only_choice = offered[0]
        return call.name == only_choice or call.name in self._final_tools


def _belongs_to(turn: Turn, note: _Note) -> bool:
    """Returns whether the turn is of the note's conversation, which has one client: it sends one of its calls, or goes
    on without results, or names the turn that made the calls as the one before, or is another attempt at that turn.
    """
    if turn.client and note.mark.client not in ("", turn.client):
        return False
    named = {turn.follows, turn.id if turn.repeated else ""} - {""}
    return note.turn_id in named or not turn.known_calls.isdisjoint(note.mark.calls) or goes_on(turn, note.mark)


def _text_from_note(note: _Note) -> str:
    """Returns the note as JSON: three items, of which the last are the calls, as in the notes of earlier versions.
    While a new version is rolled out, workers of both versions read the same note.
    """
    mark = note.mark
    return json.dumps([[mark.client, mark.session, mark.length, mark.digest], note.turn_id, [*mark.calls]])


def _note_from_text(text: str) -> _Note | None:
    """Returns the note from its JSON. An earlier version noted no conversation, so only the calls tell whose it is. A
    note in any other form counts as none.
    """
    try:
        conversation, turn_id, calls = json.loads(text)
        client, session, length, digest = conversation if isinstance(conversation, list) else ("", "", 0, "")
        mark = ConversationMark(str(client), str(session), int(length), str(digest), tuple(map(str, calls)))
        return _Note(mark, str(turn_id))
    except (ValueError, TypeError):
        return None


def _store_key(place: str) -> str:
    return f"open-calls:{place}"
