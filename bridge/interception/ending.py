"""Clients that take only a call of a certain tool for the end of a turn, such as Roo Code's attempt_completion.

An agent that has ended with plain text is not asked again: its text becomes that call. Nothing of it is known to the
agent, so its result is not given to the agent either, unless it holds something that the user said.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bridge.turn import (
    AgentEvent,
    JsonObject,
    MethodChosen,
    NewInput,
    Stopped,
    Text,
    ToolCall,
    ToolSpec,
    TurnEvent,
    UserMessage,
)

_ID = "call_end_"
# What clients send for a tool that returned nothing.
_EMPTY = ("", "(empty)", "null", "{}", "ok", "done", "success")
# Stops at which the agent had not finished, whatever it said before.
_CUT_SHORT = ("max_steps", "max_tokens_exceeded")


def ending_tool(tools: Sequence[ToolSpec], names: Collection[str]) -> ToolSpec | None:
    """The tool of the request that ends a turn."""
    return next((tool for tool in tools if tool.name in names), None)


def ended_by_call(events: Iterator[TurnEvent], tool: ToolSpec) -> Iterator[TurnEvent]:
    """The same events; text that ends the turn is given as a call of `tool`, text before a call stays text."""
    held: list[str] = []
    called = False
    for event in events:
        match event:
            case Text(text):
                held.append(text)
                continue
            case ToolCall():
                called = True
                yield from _released(held)
            case Stopped(reason) if held and not called and reason not in _CUT_SHORT:
                text = "".join(held)
                held.clear()
                yield ToolCall(_ID + secrets.token_hex(12), tool.name, json.dumps(_arguments(tool, text)))
            case Stopped():
                yield from _released(held)
        yield event


def without_endings(news: NewInput) -> NewInput:
    """What is new for the agent: no results of calls that it never made, but what the user said in them."""
    ours = [result for result in news.results if result.call_id.startswith(_ID)]
    if not ours:
        return news
    said = tuple(UserMessage(result.text) for result in ours if result.text.strip().lower() not in _EMPTY)
    others = tuple(result for result in news.results if result not in ours)
    return replace(news, results=others, said=(*said, *news.said))


def nothing_to_do() -> Iterator[AgentEvent]:
    """The turn that follows such a result when nobody said anything."""
    yield MethodChosen("none")
    yield Text("Done.")
    yield Stopped("end_turn")


def _released(held: list[str]) -> Iterator[AgentEvent]:
    if held:
        yield Text("".join(held))
        held.clear()


def _arguments(tool: ToolSpec, text: str) -> JsonObject:
    """Valid by the tool's schema: the text in its first text parameter, required ones first; the least for the rest."""
    schema = tool.parameters or {}
    properties = schema.get("properties")
    described: dict[str, Any] = properties if isinstance(properties, dict) else {}
    listed = schema.get("required")
    required = [name for name in listed if name in described] if isinstance(listed, list) else []
    textual = [
        name for name in [*required, *described] if _type(described[name]) == "string" and not _limited(described[name])
    ]
    arguments = {name: _least(described[name]) for name in required}
    if textual:
        arguments[textual[0]] = text
    elif not described:
        arguments["result"] = text
    return arguments


def _type(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        return next((item for item in kind if item != "null"), "null")
    return kind if isinstance(kind, str) else "string"


def _limited(schema: Any) -> bool:
    return isinstance(schema, dict) and ("enum" in schema or "const" in schema)


def _least(schema: Any) -> Any:
    if isinstance(schema, dict):
        for key in ("default", "const"):
            if key in schema:
                return schema[key]
        if schema.get("enum"):
            return schema["enum"][0]
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list) and "null" in kind:
        return None
    return {"boolean": True, "integer": 0, "number": 0, "array": [], "object": {}, "null": None}.get(_type(schema), "")
