"""Serves clients that expect a call of a certain tool at the end of a task, such as Roo Code's attempt_completion.

If the agent ends with plain text, the bridge does not ask the agent again. It makes a call of the ending tool with that
text. The agent never made this call, so it does not get a result. Most results are receipts, which a program wrote. The
agent hears of two kinds of results, as user messages: what a person wrote, and why the client does not accept the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bridge.stubs.normalise import normalise_schema
from bridge.stubs.subschemas import is_impossible
from bridge.turn import (
    AgentEvent,
    CallIds,
    JsonObject,
    MethodChosen,
    NewInput,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    TurnEvent,
    UserMessage,
    joined_text,
)

# The marks that coding clients put around a person's words, and around an error, in a result.
_MARKED = re.compile(r"<(feedback|user_message|error)>(.*?)</\1>", re.DOTALL)
# In results that are JSON objects, clients mark an end that was not accepted so, and give the words under "feedback".
_REFUSALS = ("denied", "error")


def find_ending_tool(tools: Sequence[ToolSpec], names: Collection[str]) -> ToolSpec | None:
    """Returns the first tool of the request whose name is in `names` (BRIDGE_FINAL_TOOLS)."""
    return next((tool for tool in tools if tool.name in names), None)


def end_with_call(events: Iterator[TurnEvent], tool: ToolSpec, call_ids: CallIds) -> Iterator[TurnEvent]:
    """Yields the events of a turn, with a call of the ending tool `tool` at the end instead of the agent's text. The
    text stays text if the agent also calls a tool of the client, or if Letta stops the agent before it has finished.
    """
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
            case Stopped() if held and not called and not event.is_cut_short:
                arguments = _ending_arguments(tool, joined_text(held))
                yield ToolCall(call_ids.new_ending_id(), tool.name, json.dumps(arguments))
            case Stopped():
                yield from held
        yield event


def ending_results(new_input: NewInput, call_ids: CallIds) -> tuple[ToolResult, ...]:
    """Returns the results of calls that `end_with_call` made."""
    return tuple(result for result in new_input.results if call_ids.is_ending_id(result.call_id))


def without_ending_results(new_input: NewInput, of_endings: Sequence[ToolResult]) -> NewInput:
    """Returns the input without `of_endings`, the results of calls that `end_with_call` made. Those that are not
    receipts become user messages.
    """
    if not of_endings:
        return new_input
    said = [UserMessage(result.text) for result in of_endings if not _is_receipt(result)]
    others = tuple(result for result in new_input.results if result not in of_endings)
    return replace(new_input, results=others, user_messages=(*said, *new_input.user_messages))


def _is_receipt(result: ToolResult) -> bool:
    """Returns whether no person wrote the result, and it accepts the end. Only marks count, not the words: the wording
    of receipts is the client's own.
    """
    if result.is_error or any(words.strip() for _, words in _MARKED.findall(result.text)):
        return not result.text.strip()
    try:
        answer = json.loads(result.text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(answer, dict) or not (answer.get("feedback") or answer.get("status") in _REFUSALS)


def events_without_agent() -> Iterator[AgentEvent]:
    """Yields the events of a turn that asks no agent: the client sent only a receipt for a call of an ending tool."""
    yield MethodChosen("none")
    yield Text("Done.")
    yield Stopped("end_turn")


def _ending_arguments(tool: ToolSpec, text: str) -> JsonObject:
    """Returns arguments for the ending tool, with the text in the first required parameter that accepts any text, else
    in the first optional one. Without such a parameter, the text is lost.
    """
    schema = normalise_schema(tool.parameters or {}).schema
    described = {name: inner for name, inner in schema.get("properties", {}).items() if not is_impossible(inner)}
    required = [name for name in schema.get("required", []) if name in described]
    arguments = {name: _minimal_value(described[name]) for name in required}
    textual = next((name for name in [*required, *described] if _is_free_text(described[name])), None)
    if textual is not None:
        arguments[textual] = text
    elif not described:
        arguments["result"] = text
    return arguments


def _is_free_text(schema: JsonObject) -> bool:
    return _schema_type(schema) == "string" and "enum" not in schema and "const" not in schema


def _schema_type(schema: JsonObject) -> str:
    """Returns the schema's first type other than "null"; "null" if only null is allowed, "string" without a type."""
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((item for item in kind if item != "null"), "null")
    return kind if isinstance(kind, str) else "string"


def _minimal_value(schema: JsonObject) -> Any:
    """Returns the default, constant or first enum value of a required parameter, otherwise null or an empty value."""
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
