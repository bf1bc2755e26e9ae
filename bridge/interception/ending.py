"""Serves clients that expect a call of a certain tool at the end of a task, such as Roo Code's attempt_completion.

If the agent ends with plain text, the bridge does not ask the agent again. It makes a call of the ending tool with that
text. The agent never made this call, so it does not get the result, except for words that the user wrote in the result.
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

# Texts that clients send as the result of a tool that returned nothing.
_EMPTY = ("", "(empty)", "null", "{}", "ok", "done", "success")
# Letta's stop reasons for an agent that has not finished its task, even if its last event is text.
_CUT_SHORT = ("max_steps", "max_tokens_exceeded")


def find_ending_tool(tools: Sequence[ToolSpec], names: Collection[str]) -> ToolSpec | None:
    """Returns the first tool of the request whose name is in `names` (BRIDGE_FINAL_TOOLS), None if there is none."""
    return next((tool for tool in tools if tool.name in names), None)


def end_with_call(events: Iterator[TurnEvent], tool: ToolSpec, call_ids: CallIds) -> Iterator[TurnEvent]:
    """Yields the events of a turn, with a call of the ending tool `tool` instead of the agent's text.

    The call has all text of the turn and comes at the end of the turn. The text stays text if the agent calls a tool of
    the client after it or before it, or if Letta stops the agent before it has finished. Text is yielded only before
    such a call or at the end, because the end shows whether the text stays text.
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
            case Stopped(reason) if held and not called and reason not in _CUT_SHORT:
                text = "".join(map(separated_text, held, [None, *held]))
                yield ToolCall(call_ids.new_ending_id(), tool.name, json.dumps(_ending_arguments(tool, text)))
            case Stopped():
                yield from held
        yield event


def without_ending_results(new_input: NewInput, call_ids: CallIds) -> NewInput:
    """Returns the input without the results of calls that `end_with_call` made: the agent never made these calls.

    The text of such a result becomes a user message before the other user messages. If the text is one of _EMPTY, the
    result is dropped.
    """
    of_endings = [result for result in new_input.results if call_ids.is_ending_id(result.call_id)]
    if not of_endings:
        return new_input
    written = [UserMessage(result.text) for result in of_endings if result.text.strip().lower() not in _EMPTY]
    others = tuple(result for result in new_input.results if result not in of_endings)
    return replace(new_input, results=others, user_messages=(*written, *new_input.user_messages))


def events_without_agent() -> Iterator[AgentEvent]:
    """Yields the events of a turn for which no agent is asked: the text "Done.".

    The client gets this turn if it sent only an empty result of an ending tool.
    """
    yield MethodChosen("none")
    yield Text("Done.")
    yield Stopped("end_turn")


def _ending_arguments(tool: ToolSpec, text: str) -> JsonObject:
    """Returns arguments with the agent's text for a call of the ending tool, valid by the tool's schema.

    The agent's text goes into the first required parameter that accepts any text, or else into the first optional one.
    The other required parameters get a minimal value. A schema without parameters gets the argument `result`. If no
    parameter accepts any text, the text is lost.
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
    """Returns whether a parameter with this JSON Schema accepts any text. A schema that is no object accepts it."""
    return not isinstance(schema, dict) or (
        _schema_type(schema) == "string" and "enum" not in schema and "const" not in schema
    )


def _schema_type(schema: JsonObject) -> str:
    """Returns the first JSON Schema type of the schema that is not "null"; "null" if the schema allows only null.

    A schema without a type counts as "string".
    """
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((item for item in kind if item != "null"), "null")
    return kind if isinstance(kind, str) else "string"


def _minimal_value(schema: Any) -> Any:
    """Returns a value for a required parameter: the schema's default, its constant, or the first value of its enum.

    Without these, returns None if null is one of several types, otherwise an empty value of the schema's first type
    (true for a boolean).
    """
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
