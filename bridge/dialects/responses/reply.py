"""Writes one response, as a stream of events or as one object."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from bridge import sse
from bridge.dialects.responses.ids import response_id
from bridge.dialects.responses.output import Output
from bridge.dialects.responses.response import ResponseObject
from bridge.dialects.responses.tools import OfferedTools
from bridge.errors import BridgeError
from bridge.turn import AgentEvent, JsonObject, Stopped


class ResponsesReply:
    """Writes the events of the stream in OpenAI's order, each with the next number. A stream always ends with what
    became of the response: clients of this API ask again after `response.failed`.
    """

    breaks_connection = False

    def __init__(self, response: ResponseObject, tools: OfferedTools, on_finish: Callable[[JsonObject], None]) -> None:
        """`on_finish` gets the whole response when nothing failed, before the client gets the end."""
        self._response = response
        self._on_finish = on_finish
        self._output = Output(tools)
        self._numbers = count()
        self._begun = False

    def begin(self, turn_id: str) -> None:
        self._response.id = response_id(turn_id)

    def frames(self, event: AgentEvent) -> list[bytes]:
        return [*self._opening(), *map(self._frame, self._output.events_for(event))]

    def ping(self) -> list[bytes]:
        """Says again that the response is in progress: some clients do not count comments as signs of life."""
        if not self._begun:
            return self._opening()
        return [self._frame({"type": "response.in_progress", "response": self._response.in_progress()})]

    def end(self) -> list[bytes]:
        opening, closing = self._opening(), [*map(self._frame, self._output.close())]
        last = self._finished()
        return [*opening, *closing, self._frame({"type": f"response.{last['status']}", "response": last})]

    def failure(self, failure: BridgeError) -> list[bytes]:
        failed = self._response.failed(self._output.unfinished_items(), failure)
        return [*self._opening(), self._frame({"type": "response.failed", "response": failed})]

    def body(self, events: Iterable[AgentEvent]) -> JsonObject:
        for event in events:
            self._output.events_for(event)
        self._output.close()
        return self._finished()

    def _finished(self) -> JsonObject:
        output = self._output
        is_cut = Stopped(output.stop_reason).is_cut_short and not output.has_calls
        made = self._response.incomplete if is_cut else self._response.completed
        finished = made(output.items, output.used)
        self._on_finish(finished)
        return finished

    def _opening(self) -> list[bytes]:
        """Returns the events that begin the stream, once."""
        if self._begun:
            return []
        self._begun = True
        begun = self._response.in_progress()
        return [self._frame({"type": f"response.{kind}", "response": begun}) for kind in ("created", "in_progress")]

    def _frame(self, event: JsonObject) -> bytes:
        return sse.encode_named_event(event["type"], {**event, "sequence_number": next(self._numbers)})
