"""The agent's newest messages as the server has stored them.

They are read at most once in a turn, and only if the request alone does not say enough.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from bridge.interception.method import PreparedTurn
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, AgentEvent, Reasoning, Stopped, Text, ToolCall, ToolResult

LOOK_BACK = 20
REQUEST = "approval_request_message"
CALL = "tool_call_message"
RETURN = "tool_return_message"
SYSTEM = "system_message"
USER = "user_message"
# letta_v1_agent keeps of each result a fifth of its context window, and says how much it left out.
_CLIPPED = re.compile(r"\.\.\. \[truncated (\d+) chars\]\Z")


class StoredMessages:
    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn

    @cached_property
    def newest_rows(self) -> Sequence[StoredMessage]:
        """Also those that are not in the context any more; in no certain order."""
        turn = self._turn
        return turn.gateway.newest_messages(turn.agent.id, LOOK_BACK, including=turn.last_message_id)

    @cached_property
    def context_rows(self) -> Sequence[StoredMessage]:
        """Those in the context, in its order. One message may have several rows: a thought, then a call."""
        places = {message_id: place for place, message_id in enumerate(self._turn.agent.message_ids)}
        return sorted((row for row in self.newest_rows if row.id in places), key=lambda row: places[row.id])

    def held_request(self) -> StoredMessage | None:
        """The approval request that the agent waits at: the last message of the context, whatever was stored last."""
        return next(
            (row for row in self.context_rows if row.kind == REQUEST and row.id == self._turn.last_message_id), None
        )

    def find_return(self, result: ToolResult) -> tuple[int, str] | None:
        """(row, text) of what the call of this result returned, None if it has not returned.

        The client's id leads to the call or to its return, depending on the method.
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

    def find_row_of_result(self, result: ToolResult) -> int | None:
        """The row in which the agent got exactly this result before, None if it did not."""
        found = self.find_return(result)
        return found[0] if found is not None and _is_stored_as(result.text, found[1]) else None

    def missed_answer(self, row: int = 0, *, called_by_return: bool = False) -> list[AgentEvent]:
        """What the agent did after this row and the messages of this turn: the answer that the client missed.

        Empty if the agent did nothing, or was broken off at a tool of its own. `called_by_return`: the client knows
        calls by the ids of their returns.
        """
        sent = (number for number, one in enumerate(self.context_rows) if self._turn.has_sent(one.otid))
        events = list(self._events_after(max(row, *sent, 0), called_by_return))
        steps = [event for event in events if not isinstance(event, Reasoning)]
        if not steps or isinstance(steps[-1], AgentCall):
            return []
        return [*(event for event in events if not isinstance(event, AgentCall)), Stopped("end_turn")]

    def _events_after(self, start: int, called_by_return: bool) -> Iterator[AgentEvent]:
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
    """Whether the stored return is this text, whole or as much of it as the server keeps."""
    clipped = _CLIPPED.search(stored)
    if stored == text or clipped is None:
        return stored == text
    begin = stored[: clipped.start()]
    return text.startswith(begin) and len(text) - len(begin) == int(clipped[1])


def is_heartbeat(row: StoredMessage) -> bool:
    """Whether it is the message of Letta's own by which the older loops go on after a tool."""
    if row.kind != USER or not row.text.startswith("{"):
        return False
    try:
        content = json.loads(row.text)
    except ValueError:
        return False
    return isinstance(content, dict) and content.get("type") == "heartbeat"
