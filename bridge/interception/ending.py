"""Clients for which only a call of a certain tool ends a turn, such as Roo Code's attempt_completion.

If the agent ends with plain text, it is not asked again: its text becomes that call. The agent knows nothing of the
call, so it does not get the result, unless this says something that the user wrote.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bridge.turn import (
    AgentEvent,
    CallIds,
    JsonObject,
    MethodChosen,
    NewInput,
    Stopped,
    Text,
    ToolCall,
    ToolSpec,
    TurnEvent,
    UserMessage,
    separated_text,
)

# What clients send for a tool that returned nothing.
_EMPTY = ("", "(empty)", "null", "{}", "ok", "done", "success")
# Reasons for which an agent stops before it has finished, whatever it said.
_CUT_SHORT = ("max_steps", "max_tokens_exceeded")


def find_ending_tool(tools: Sequence[ToolSpec], names: Collection[str]) -> ToolSpec | None:
    """The tool of the request that ends a turn."""
    return next((tool for tool in tools if tool.name in names), None)


def end_with_call(events: Iterator[TurnEvent], tool: ToolSpec, call_ids: CallIds) -> Iterator[TurnEvent]:
    """The same events, with a call of `tool` instead of the text that ends the turn. Text beside a call stays text."""
    held: list[Text] = []
    called = False
    for event in events:
        match event:
            case Text():
                held.append(event)
                continue
            case ToolCall():
                called = True
                yield from held
                held.clear()
            case Stopped(reason) if held and not called and reason not in _CUT_SHORT:
                text = "".join(map(separated_text, held, [None, *held]))
                yield ToolCall(call_ids.new_ending_id(), tool.name, json.dumps(_ending_arguments(tool, text)))
            case Stopped():
                yield from held
        yield event


def without_ending_results(new_input: NewInput, call_ids: CallIds) -> NewInput:
    """The input without results of calls that the agent never made. What the user wrote in them stays, as a message."""
    of_endings = [result for result in new_input.results if call_ids.is_ending_id(result.call_id)]
    if not of_endings:
        return new_input
    written = [UserMessage(result.text) for result in of_endings if result.text.strip().lower() not in _EMPTY]
    others = tuple(result for result in new_input.results if result not in of_endings)
    return replace(new_input, results=others, user_messages=(*written, *new_input.user_messages))


def events_without_agent() -> Iterator[AgentEvent]:
    """The turn that follows such a result if the user wrote nothing."""
    yield MethodChosen("none")
    yield Text("Done.")
    yield Stopped("end_turn")


def _ending_arguments(tool: ToolSpec, text: str) -> JsonObject:
    """Arguments that are valid by the tool's schema.

    The text is in its first text parameter, a required one if there is any. Other required ones get a minimal value.
    """
    schema = tool.parameters or {}
    properties, listed = schema.get("properties"), schema.get("required")
    described: dict[str, Any] = properties if isinstance(properties, dict) else {}
    required = [name for name in listed if name in described] if isinstance(listed, list) else []
    arguments = {name: _minimal_value(described[name]) for name in required}
    textual = next((name for name in [*required, *described] if _is_free_text(described[name])), None)
    if textual is not None:
        arguments[textual] = text
    elif not described:
        arguments["result"] = text
    return arguments


def _is_free_text(schema: Any) -> bool:
    return not isinstance(schema, dict) or (
        _schema_type(schema) == "string" and "enum" not in schema and "const" not in schema
    )


def _schema_type(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((item for item in kind if item != "null"), "null")
    return kind if isinstance(kind, str) else "string"


def _minimal_value(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return ""
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    if isinstance(schema.get("type"), list) and "null" in schema["type"]:
        return None
    return {"boolean": True, "integer": 0, "number": 0, "array": [], "object": {}, "null": None}.get(
        _schema_type(schema), ""
    )
