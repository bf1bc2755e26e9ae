"""What the server has stored of the agent's newest messages, as far as they are still in its context.

It is asked at most once in a turn, and only where the request alone does not tell how things stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from bridge.dialects.openai.call_ids import message_of
from bridge.interception.method import PreparedTurn, for_client
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, AgentEvent, Reasoning, Stopped, Text, ToolCall, ToolResult

LOOK_BACK = 20
REQUEST = "approval_request_message"
CALL = "tool_call_message"
RETURN = "tool_return_message"
SYSTEM = "system_message"
USER = "user_message"
# letta_v1_agent keeps a fifth of its context window of each result, and says so.
_CLIPPED = re.compile(r"\.\.\. \[truncated (\d+) chars\]\Z")


class StoredMessages:
    """Rows in the order of the context. One message may have several: a thought, then a call."""

    def __init__(self, turn: PreparedTurn) -> None:
        self._turn = turn
        self._stored: Sequence[StoredMessage] | None = None

    @property
    def stored(self) -> Sequence[StoredMessage]:
        """Those too that are no more in the context, in no certain order."""
        if self._stored is None:
            turn = self._turn
            self._stored = turn.gateway.newest_messages(turn.agent.id, LOOK_BACK, including=turn.last_message_id)
        return self._stored

    @property
    def rows(self) -> Sequence[StoredMessage]:
        places = {message_id: place for place, message_id in enumerate(self._turn.agent.message_ids)}
        return sorted((row for row in self.stored if row.id in places), key=lambda row: places[row.id])

    def held(self) -> StoredMessage | None:
        """The approval request that the agent waits at. The end of its context tells, not the newest stored message."""
        return next((row for row in self.rows if row.kind == REQUEST and row.id == self._turn.last_message_id), None)

    def return_of(self, result: ToolResult) -> tuple[int, str] | None:
        """(row, text) of what the call of this result returned, None when it returned nothing yet.

        A client's id leads to the call or to its return, as the method has it.
        """
        message_id, index = message_of(result.call_id) or ("", 0)
        kinds = (REQUEST, CALL, RETURN)
        places = (place for place, row in enumerate(self.rows) if row.id == message_id and row.kind in kinds)
        start = next(places, len(self.rows))
        place = next((place for place in range(start, len(self.rows)) if self.rows[place].kind == RETURN), None)
        if place is None:
            return None
        returned, calls = self.rows[place], self.rows[start].calls
        text = returned.returns.get(calls[index].call_id, returned.text) if index < len(calls) else returned.text
        return place, text

    def place_of(self, result: ToolResult) -> int | None:
        """The row in which the agent was given this very result before, None when it was not."""
        found = self.return_of(result)
        return found[0] if found is not None and _says(found[1], result.text) else None

    def told(self) -> int:
        """The row of the last message of this very turn that an attempt before brought; 0 when there was none."""
        return max((place for place, row in enumerate(self.rows) if self._turn.is_ours(row.otid)), default=0)

    def answer(self, place: int, *, called_by_return: bool) -> list[AgentEvent]:
        """What the agent did next, for a client that repeats a request whose answer it missed.

        Empty when it did nothing, or was broken off with a tool of its own. `called_by_return`: the client knows calls
        by the ids of their returns.
        """
        done = list(self._answered(place, called_by_return))
        steps = [step for step in done if not isinstance(step, Reasoning)]
        if not steps or isinstance(steps[-1], AgentCall):
            return []
        return [*(step for step in done if not isinstance(step, AgentCall)), Stopped("end_turn")]

    def _answered(self, place: int, called_by_return: bool) -> Iterator[AgentEvent]:
        said = ""
        for number, row in enumerate(self.rows[place + 1 :], start=place + 1):
            if row.kind == SYSTEM or (row.kind == USER and not is_heartbeat(row)):
                return
            if row.kind == "reasoning_message" and row.text:
                yield Reasoning(row.text)
            elif row.kind == "assistant_message" and row.text:
                yield Text(f"\n\n{row.text}" if said else row.text)
                said = row.text
            elif row.calls and all(call.name in self._turn.bound for call in row.calls):
                yield from self._calls(number, called_by_return)
                return
            elif row.calls:
                yield row.calls[0]

    def _calls(self, place: int, called_by_return: bool) -> Iterator[ToolCall]:
        row = self.rows[place]
        named = row
        if called_by_return:
            named = next((later for later in self.rows[place:] if later.kind == RETURN), row)
        for call in row.calls if self._turn.parallel else row.calls[:1]:
            yield for_client(self._turn.bound[call.name], call, named.id)


def _says(stored: str, text: str) -> bool:
    """Whether a stored return is this text, whole or as much of it as the server keeps."""
    clipped = _CLIPPED.search(stored)
    if stored == text or clipped is None:
        return stored == text
    begin = stored[: clipped.start()]
    return text.startswith(begin) and len(text) - len(begin) == int(clipped[1])


def is_heartbeat(row: StoredMessage) -> bool:
    """Letta's own message by which the older loops go on after a tool."""
    if row.kind != USER or not row.text.startswith("{"):
        return False
    try:
        wrapping = json.loads(row.text)
    except ValueError:
        return False
    return isinstance(wrapping, dict) and wrapping.get("type") == "heartbeat"
