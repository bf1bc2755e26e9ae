"""Makes chat completion chunks from an agent's events. The unstreamed completion is made from the same chunks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, assert_never

from bridge.dialects.openai.finish import finish_reason
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
    separated_text,
)

_FIELDS: dict[type[Text | Reasoning], str] = {Text: "content", Reasoning: "reasoning_content"}


@dataclass(frozen=True, slots=True)
class Envelope:
    """The fields that are the same in every chunk of one reply. `created` is the Unix time when the reply began."""

    model: str
    id: str = field(default_factory=lambda: "chatcmpl-" + secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))


class Chunks:
    """Makes the chunks of one streamed reply: the role in the first, token counts in the last with `include_usage`."""

    def __init__(self, envelope: Envelope, *, include_usage: bool) -> None:
        self._envelope = envelope
        self._include_usage = include_usage
        self._role: dict[str, Any] = {"role": "assistant"}
        self._calls = 0
        self._used = Used(0, 0)
        self._reason = "end_turn"
        self._last: dict[type[AgentEvent], Text | Reasoning] = {}

    def chunks_for(self, event: AgentEvent) -> list[JsonObject]:
        """Returns the chunks for one event, often none. Keeps token counts and stop reason for `last_chunks`."""
        delta = self.delta_for(event)
        return [] if delta is None else [self._delta_chunk(delta)]

    def delta_for(self, event: AgentEvent) -> JsonObject | None:
        """Returns what one event adds to the message, often None. Keeps token counts and stop reason."""
        match event:
            case Text() | Reasoning():
                return {_FIELDS[type(event)]: self.text_of(event)}
            case ToolCall():
                self._calls += 1
                return {"tool_calls": [_call_delta(event, self._calls - 1)]}
            case Used():
                self._used = event
            case Stopped(reason):
                self._reason = reason
            case MethodChosen() | Notice() | AgentCall() | AgentReturn() | RunStarted() | FormatChecked():
                pass
            case _:
                assert_never(event)
        return None

    def text_of(self, event: Text | Reasoning) -> str:
        """Returns a piece's text, after an empty line if it begins a further message. Call once a piece, in order."""
        last = self._last.get(type(event))
        self._last[type(event)] = event
        return separated_text(event, last)

    def text_chunk(self, kind: type[Text | Reasoning], text: str) -> JsonObject:
        return self._delta_chunk({_FIELDS[kind]: text})

    def last_chunks(self) -> list[JsonObject]:
        """Returns the chunk with the finish reason and, if the client wants it, the chunk with the token counts."""
        last = [self._choice_chunk(self._role, self.finish_reason)]
        if self._include_usage:
            last.append(
                {
                    **_common_fields(self._envelope, "chat.completion.chunk"),
                    "choices": [],
                    "usage": self.usage,
                },
            )
        return last

    @property
    def finish_reason(self) -> str:
        return finish_reason(self._reason, self._calls > 0)

    @property
    def usage(self) -> JsonObject:
        return _usage_object(self._used)

    def _delta_chunk(self, delta: JsonObject) -> JsonObject:
        whole = {**self._role, **delta}
        self._role = {}
        return self._choice_chunk(whole, None)

    def _choice_chunk(self, delta: JsonObject, finish: str | None) -> JsonObject:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**_common_fields(self._envelope, "chat.completion.chunk"), "choices": [choice]}


def completion_from_events(events: Iterable[AgentEvent], envelope: Envelope) -> JsonObject:
    """Joins what the chunks of a stream would add. `content` is null only if there are calls and no text."""
    chunks = Chunks(envelope, include_usage=True)
    content, reasoning, calls = list[str](), list[str](), list[JsonObject]()
    for delta in map(chunks.delta_for, events):
        if delta is None:
            continue
        content.append(delta.get("content", ""))
        reasoning.append(delta.get("reasoning_content", ""))
        calls += [{k: v for k, v in call.items() if k != "index"} for call in delta.get("tool_calls", ())]
    text = "".join(content)
    message: dict[str, Any] = {"role": "assistant", "content": None if calls and not text else text, "refusal": None}
    if any(reasoning):
        message["reasoning_content"] = "".join(reasoning)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": chunks.finish_reason}
    return {**_common_fields(envelope, "chat.completion"), "choices": [choice], "usage": chunks.usage}


def _common_fields(envelope: Envelope, kind: str) -> dict[str, Any]:
    return {"id": envelope.id, "object": kind, "created": envelope.created, "model": envelope.model}


def _call_delta(call: ToolCall, index: int) -> JsonObject:
    function = {"name": call.name, "arguments": call.arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _usage_object(used: Used) -> JsonObject:
    total = used.prompt_tokens + used.completion_tokens
    return {
        "prompt_tokens": used.prompt_tokens,
        "completion_tokens": used.completion_tokens,
        "total_tokens": total,
    }
