"""Makes the items of a response from an agent's events, with the events of the stream that tell of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, assert_never

from bridge.dialects.responses.ids import ItemIds
from bridge.dialects.responses.tools import FREE_TEXT, OfferedTool, OfferedTools
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    FormatChecked,
    JsonObject,
    MethodChosen,
    Notice,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    Used,
)


@dataclass(slots=True)
class _OpenItem:
    """A message or a thought whose text still arrives, in pieces."""

    kind: Literal["message", "reasoning"]
    id: str
    source: str  # the id of the Letta message
    place: int
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def delta(self, piece: str) -> JsonObject:
        self.pieces.append(piece)
        if self.kind == "message":
            return {**self._event("response.output_text.delta"), "delta": piece, "logprobs": []}
        return {**self._event("response.reasoning_summary_text.delta"), "delta": piece}

    def begin(self) -> list[JsonObject]:
        added = _item_event("added", self.place, self._item("in_progress", []))
        part = "content_part" if self.kind == "message" else "reasoning_summary_part"
        return [added, {**self._event(f"response.{part}.added"), "part": self._part("")}]

    def end(self) -> list[JsonObject]:
        part = self._part(self.text)
        if self.kind == "message":
            done: JsonObject = {**self._event("response.output_text.done"), "text": self.text, "logprobs": []}
            ended = self._event("response.content_part.done")
        else:
            done = {**self._event("response.reasoning_summary_text.done"), "text": self.text}
            ended = self._event("response.reasoning_summary_part.done")
        return [done, {**ended, "part": part}, _item_event("done", self.place, self.whole("completed"))]

    def whole(self, status: str) -> JsonObject:
        return self._item(status, [self._part(self.text)])

    def _item(self, status: str, parts: list[JsonObject]) -> JsonObject:
        if self.kind == "message":
            return {"type": "message", "id": self.id, "status": status, "role": "assistant", "content": parts}
        return {"type": "reasoning", "id": self.id, "summary": parts, "status": status}

    def _part(self, text: str) -> JsonObject:
        if self.kind == "message":
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {"type": "summary_text", "text": text}

    def _event(self, kind: str) -> dict[str, Any]:
        index = "content_index" if self.kind == "message" else "summary_index"
        return {"type": kind, "item_id": self.id, "output_index": self.place, index: 0}


class Output:
    """The items of one response, in the order in which the agent made them. `used` and `stop_reason` are the run's."""

    def __init__(self, tools: OfferedTools) -> None:
        self.items: list[JsonObject] = []
        self.used = Used(0, 0)
        self.stop_reason = "end_turn"
        self.has_calls = False
        self._tools = tools
        self._ids = ItemIds()
        self._open: _OpenItem | None = None

    def events_for(self, event: AgentEvent) -> list[JsonObject]:
        """Returns the events of the stream for one event of the agent, often none; without their numbers."""
        match event:
            case Text():
                return self._add_text("message", event.text, event.item_id)
            case Reasoning():
                return self._add_text("reasoning", event.text, event.item_id)
            case ToolCall():
                return [*self.close(), *self._add_call(event)]
            case Used():
                self.used = event
            case Stopped(reason):
                self.stop_reason = reason
            case MethodChosen() | Notice() | AgentCall() | AgentReturn() | RunStarted() | FormatChecked():
                pass
            case _:
                assert_never(event)
        return []

    def close(self) -> list[JsonObject]:
        """Ends the item whose text arrived until now."""
        if self._open is None:
            return []
        ended, self._open = self._open, None
        self.items.append(ended.whole("completed"))
        return ended.end()

    def unfinished_items(self) -> list[JsonObject]:
        """Returns all items so far; the last is incomplete if its text still arrives."""
        return [*self.items, *([self._open.whole("incomplete")] if self._open else [])]

    def _add_text(self, kind: Literal["message", "reasoning"], text: str, source: str) -> list[JsonObject]:
        before: list[JsonObject] = []
        if self._open is None or (self._open.kind, self._open.source) != (kind, source):
            before = self.close()
            made = self._ids.new("msg" if kind == "message" else "rs", source)
            self._open = _OpenItem(kind, made, source, len(self.items))
            before += self._open.begin()
        return [*before, self._open.delta(text)]

    def _add_call(self, call: ToolCall) -> list[JsonObject]:
        self.has_calls = True
        tool = self._tools.by_spec_name.get(call.name)
        place = len(self.items)
        if tool is not None and tool.kind == "custom":
            kind, name, text = "custom_tool_call", FREE_TEXT, _free_text(call.arguments)
            item: dict[str, Any] = {"type": kind, "id": call.id.replace("call_", "ctc_", 1)}
        else:
            kind, name, text = "function_call", "arguments", call.arguments
            item = {"type": kind, "id": call.id.replace("call_", "fc_", 1), "status": "completed"}
        item |= {"call_id": call.id, "name": tool.name if tool else call.name, name: text, **_namespace_of(tool)}
        self.items.append(item)
        begun = {**item, name: "", **({"status": "in_progress"} if "status" in item else {})}
        words = f"response.{'custom_tool_call_input' if kind == 'custom_tool_call' else 'function_call_arguments'}"
        about = {"item_id": item["id"], "output_index": place}
        return [
            _item_event("added", place, begun),
            {"type": f"{words}.delta", **about, "delta": text},
            {"type": f"{words}.done", **about, name: text},
            _item_event("done", place, item),
        ]


def _item_event(what: Literal["added", "done"], place: int, item: JsonObject) -> JsonObject:
    return {"type": f"response.output_item.{what}", "output_index": place, "item": item}


def _namespace_of(tool: OfferedTool | None) -> JsonObject:
    return {"namespace": tool.namespace} if tool and tool.namespace else {}


def _free_text(arguments: str) -> str:
    """Returns the text for a tool that takes free text; the model's own words if they are not the JSON asked for."""
    try:
        given: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    text = given.get(FREE_TEXT) if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments
