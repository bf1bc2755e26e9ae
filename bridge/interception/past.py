"""What the server has stored of the agent's newest messages, as far as they are still in its context.

It is asked at most once in a turn, and only where the request alone does not tell how things stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.interception.ids import message_of
from bridge.interception.method import Scene, for_client, provisional
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, ToolCall, ToolResult

LOOK_BACK = 20
REQUEST = "approval_request_message"
CALL = "tool_call_message"
RETURN = "tool_return_message"


class Past:
    """Rows in the order of the context. One message may have several: a thought, then a call."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._rows: list[StoredMessage] | None = None

    @property
    def rows(self) -> Sequence[StoredMessage]:
        if self._rows is None:
            places = {message_id: place for place, message_id in enumerate(self._scene.agent.message_ids)}
            stored = self._scene.gateway.newest_messages(self._scene.agent.id, LOOK_BACK)
            self._rows = sorted((row for row in stored if row.id in places), key=lambda row: places[row.id])
        return self._rows

    def held(self) -> StoredMessage | None:
        """The approval request that the agent waits at. The end of its context tells, not the newest stored message."""
        return next((row for row in self.rows if row.kind == REQUEST and row.id == self._scene.last_message_id), None)

    def returned(self, result: ToolResult) -> str | None:
        """What the agent was told that the call of this result returned, None when it was told nothing yet.

        A client's id leads to the call or to its return, as the method has it.
        """
        message_id, index = message_of(result.call_id) or ("", 0)
        kinds = (REQUEST, CALL, RETURN)
        places = (place for place, row in enumerate(self.rows) if row.id == message_id and row.kind in kinds)
        start = next(places, len(self.rows))
        found = next((row for row in self.rows[start:] if row.kind == RETURN), None)
        if found is None:
            return None
        calls = self.rows[start].calls
        return found.returns.get(calls[index].call_id, found.text) if index < len(calls) else found.text

    def has(self, result: ToolResult) -> bool:
        """Whether the agent was given this very result before: the client repeats a request whose answer it missed."""
        return self.returned(result) == result.text

    def unanswered(self) -> list[ToolCall]:
        """The calls at which the agent stands, if all of them are for this client: it gets them again."""
        message_id, calls = self._last_calls()
        bound = self._scene.bound
        if any(call.name not in bound for call in calls):
            return []
        taken = calls if self._scene.parallel else calls[:1]
        return [for_client(bound[call.name], call, message_id) for call in taken]

    def _last_calls(self) -> tuple[str, Sequence[AgentCall]]:
        last = self.rows[-1] if self.rows else None
        if last is None or last.id != self._scene.last_message_id:
            return "", ()
        if last.kind == REQUEST:
            return last.id, last.calls
        if last.kind == RETURN and provisional(last.text):
            return last.id, next((row.calls for row in reversed(self.rows) if row.calls), ())
        return "", ()
