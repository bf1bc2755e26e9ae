"""Writes the reply to a message request of Letta's own API: as a stream, or as one JSON body."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bridge import sse
from bridge.dialects.letta.answers import GivenAnswer
from bridge.dialects.letta.messages import Messages
from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject


class LettaReply:
    """The reply to one request. `by_token`: the client wants text in pieces. Only a reply in whole messages begins with
    an echo of the client's answers, as Letta's own.
    """

    breaks_connection = False

    def __init__(self, answers: Sequence[GivenAnswer], *, by_token: bool) -> None:
        self._messages = Messages(by_token=by_token)
        self._answers = () if by_token else answers
        self._begun = False

    def begin(self, turn_id: str) -> None:
        """Does nothing: Letta's replies have no id."""

    def frames(self, event: AgentEvent) -> list[bytes]:
        made = self._messages.messages_for(event)
        return [*self._opening(), *map(sse.encode_event, made)] if made else []

    def ping(self) -> list[bytes]:
        return [sse.encode_event(self._messages.ping())]

    def end(self) -> list[bytes]:
        last = [*self._messages.close(), *self._messages.last_messages()]
        return [*self._opening(), *map(sse.encode_event, last), sse.END]

    def failure(self, failure: BridgeError) -> list[bytes]:
        stop = {"message_type": "stop_reason", "stop_reason": "error"}
        error = {
            "message_type": "error_message",
            "run_id": self._messages.run_id,
            "error_type": failure.code or failure.type,
            "message": failure.message,
            "detail": failure.message,
        }
        frames = [sse.encode_event(stop), sse.encode_named_event("error", error)]
        return [*map(sse.encode_event, self._messages.close()), *frames, sse.END]

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        made = [message for event in events for message in self._messages.messages_for(event)]
        echo, last = self._messages.echo(self._answers), self._messages.close()
        stop_reason, usage = self._messages.last_messages()
        return {"messages": [*echo, *made, *last], "stop_reason": stop_reason, "usage": usage}

    def _opening(self) -> list[bytes]:
        """Returns the events that come before all others, once."""
        if self._begun:
            return []
        self._begun = True
        return [*self.ping(), *map(sse.encode_event, self._messages.echo(self._answers))]
