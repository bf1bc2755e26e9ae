"""Reads the agent's newest messages as the Letta server has stored them, only if needed. They are kept for the turn."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain

from bridge.interception.method import GO_ON, PreparedTurn, find_provisional_text, quote_mark
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, AgentEvent, JsonObject, Reasoning, Stopped, Text, ToolCall, ToolResult

# How many of the newest messages are read, and how many where a turn may have begun earlier: a run makes up to three
# messages a step, and Letta allows it 50 steps.
LOOK_BACK = 20
LOOK_FURTHER = 500
# How many are read to find the last message of a chat after which others have spoken.
LOOK_FAR = 10_000
REQUEST = "approval_request_message"
CALL = "tool_call_message"
RETURN = "tool_return_message"
SYSTEM = "system_message"
USER = "user_message"
# letta_v1_agent cuts each result to a fifth of the context window, and says at the end how many characters it left out.
_CLIPPED = re.compile(r"\.\.\. \[truncated (\d+) chars\]\Z")


class StoredMessages:
    """The newest stored messages of an agent, kept as rows. A message may have several, for a thought and a call.
    `limit` is the number of messages that are read, LOOK_FURTHER after an earlier attempt at the turn.
    """

    def __init__(self, turn: PreparedTurn, limit: int = LOOK_BACK) -> None:
        self._turn = turn
        self._limit = LOOK_FURTHER if turn.delivered else limit

    def read_further(self) -> None:
        """Reads LOOK_FURTHER messages from now on, if there may be more than were read. Rows get other numbers then."""
        if self._limit < LOOK_FURTHER and len(self.newest_rows) >= self._limit:
            self._limit = LOOK_FURTHER
            vars(self).pop("newest_rows")
            vars(self).pop("context_rows", None)

    @cached_property
    def newest_rows(self) -> Sequence[StoredMessage]:
        """About so many rows, unordered, always with the last message of the context, some not in the context."""
        turn = self._turn
        further = LOOK_FAR if turn.agent.has_chats else 0
        return turn.gateway.newest_messages(turn.agent.id, self._limit, including=turn.last_message_id, further=further)

    @cached_property
    def context_rows(self) -> Sequence[StoredMessage]:
        """The rows of messages in the agent's context, in the order of the context."""
        places = {message_id: place for place, message_id in enumerate(self._turn.agent.message_ids)}
        return sorted((row for row in self.newest_rows if row.id in places), key=lambda row: places[row.id])

    def held_request(self) -> StoredMessage | None:
        """Returns the approval request that holds the agent: the last in the context, not the last stored message."""
        return next(
            (row for row in self.context_rows if row.kind == REQUEST and row.id == self._turn.last_message_id), None
        )

    def find_return(self, result: ToolResult) -> tuple[int, str] | None:
        """Returns the row number and the text of the stored return of the call to which this result belongs. The call
        id contains the id of the Letta message with the call or with its return, depending on the method.
        """
        message_id, index = self._turn.call_ids.message_and_index(result.call_id) or ("", 0)
        kinds = (REQUEST, CALL, RETURN)
        found = (number for number, row in enumerate(self.context_rows) if row.id == message_id and row.kind in kinds)
        start = next(found, len(self.context_rows))
        number = next(
            (number for number in range(start, len(self.context_rows)) if self.context_rows[number].kind == RETURN),
            None,
        )
        if number is None:
            return None
        returned, calls = self.context_rows[number], self.context_rows[start].calls
        text = returned.returns.get(calls[index].call_id, returned.text) if index < len(calls) else returned.text
        return number, text

    def find_call(self, result: ToolResult) -> AgentCall | None:
        """Returns the call to which this result belongs, None if it is not found. A message that was removed from the
        context has its calls itself; before a return, they are in the last message in the context that has any.
        """
        message_id, index = self._turn.call_ids.message_and_index(result.call_id) or ("", 0)
        rows = self.context_rows
        returns = (number for number, row in enumerate(rows) if row.id == message_id and row.kind == RETURN)
        before = reversed(rows[: next(returns, 0)])
        own = (row for row in self.newest_rows if row.id == message_id)
        calls = next((row.calls for row in chain(own, before) if row.calls), ())
        return next((call for call in calls if call.index == index), None)

    def find_row_of_result(self, result: ToolResult) -> int | None:
        """Returns the row in which the agent got exactly this result before, perhaps cut off by Letta, or quoted."""
        returned, quoted = self.find_return(result), self._find_quote(result)
        if returned is not None and _is_stored_as(result.text, returned[1]):
            return returned[0]
        is_same = quoted is not None and _object_in(self.context_rows[quoted]).get("result") == result.text
        return quoted if is_same else None

    def has_result(self, result: ToolResult) -> bool:
        """Returns whether the agent has a result of the call to which this one belongs, this one or another."""
        returned = self.find_return(result)
        is_answered = returned is not None and find_provisional_text(returned[1]) is None
        return is_answered or self._find_quote(result) is not None

    def _find_quote(self, result: ToolResult) -> int | None:
        """Returns the row of the message that quotes a result of the call to which this one belongs."""
        end = f"-{quote_mark(result.call_id)}"
        return next((number for number, row in enumerate(self.context_rows) if row.otid.endswith(end)), None)

    def has_gone_on_after(self, number: int) -> bool:
        """Returns whether the agent was sent a user message after the row `number`."""
        return any(row.kind == USER and not is_heartbeat(row) for row in self.context_rows[number + 1 :])

    def is_last(self, number: int) -> bool:
        """Returns whether only messages that make the agent go on come after the row `number`."""
        return all(is_heartbeat(row) or is_nudge(row) for row in self.context_rows[number + 1 :])

    def missed_answer(self, row: int = 0, *, called_by_return: bool = False) -> list[AgentEvent]:
        """Returns the reply that the client missed: what the agent did after the row `row` and this turn's messages,
        without calls of its own tools. [] if the agent only thought, or last called such a tool. `called_by_return`:
        the id of each call contains the id of the message with the call's return, not with the call.
        """
        turn = self._turn
        sent = (n for n, one in enumerate(self.context_rows) if turn.has_sent(one.otid) or one.id == turn.made_with)
        events = list(self._events_after(max(row, *sent, 0), called_by_return))
        steps = [event for event in events if not isinstance(event, Reasoning)]
        if not steps or isinstance(steps[-1], AgentCall):
            return []
        return [*(event for event in events if not isinstance(event, AgentCall)), Stopped("end_turn")]

    def _events_after(self, start: int, called_by_return: bool) -> Iterator[AgentEvent]:
        """Yields what the agent did after the row `start`, until a user or system message or a call for the client."""
        for number, row in enumerate(self.context_rows[start + 1 :], start=start + 1):
            if row.kind == SYSTEM or (row.kind == USER and not is_heartbeat(row)):
                return
            if row.kind == "reasoning_message" and row.text:
                yield Reasoning(row.text, row.id)
            elif row.kind == "assistant_message" and row.text:
                yield Text(row.text, row.id)
            elif row.calls and all(call.name in self._turn.bindings_by_name for call in row.calls):
                yield from self._calls_in_row(number, called_by_return)
                return
            elif row.calls:
                yield row.calls[0]

    def _calls_in_row(self, number: int, called_by_return: bool) -> Iterator[ToolCall]:
        row = named_by = self.context_rows[number]
        if called_by_return:
            named_by = next((later for later in self.context_rows[number:] if later.kind == RETURN), row)
        for call in row.calls if self._turn.parallel else row.calls[:1]:
            yield self._turn.call_for_client(call, named_by.id)


def _is_stored_as(text: str, stored: str) -> bool:
    clipped = _CLIPPED.search(stored)
    if stored == text or clipped is None:
        return stored == text
    begin = stored[: clipped.start()]
    return text.startswith(begin) and len(text) - len(begin) == int(clipped[1])


def is_nudge(row: StoredMessage) -> bool:
    """Returns whether the row is the bridge's own message that makes an agent go on."""
    return row.kind == SYSTEM and row.text == GO_ON


def is_heartbeat(row: StoredMessage) -> bool:
    """Returns whether the row is a heartbeat: Letta's own message after a tool, with which older agent types go on."""
    return row.kind == USER and _object_in(row).get("type") == "heartbeat"


def _object_in(row: StoredMessage) -> JsonObject:
    """Returns the JSON object that is the row's text, an empty one for another text."""
    if not row.text.startswith("{"):
        return {}
    try:
        content = json.loads(row.text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
