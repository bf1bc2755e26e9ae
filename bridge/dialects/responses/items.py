"""Reads the `input` of a request to the Responses API: a string, or items, as the messages of a transcript.

Items that belong to one answer, such as a message and calls, are one message of the transcript, as in a chat request:
so the agent is told the same, whichever API its client speaks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

from bridge.dialects.base import RequestRules
from bridge.dialects.openai.content import parse_content
from bridge.dialects.openai.transcript import check_result_length
from bridge.dialects.responses.tools import FREE_TEXT, OfferedTools
from bridge.errors import InvalidRequest
from bridge.json_text import storable_json, storable_text
from bridge.turn import JsonObject, Message, ToolCall

_ROLES: dict[Any, Literal["system", "user", "assistant"]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
# Items of an answer whose text the client does not send: thoughts, and what the server is expected to have.
_UNTOLD = ("reasoning", "item_reference")
_CALLS = ("function_call", "custom_tool_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")


def input_items(body: JsonObject) -> list[Any]:
    """Returns the items of the input. A string is one message of the user."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        other = " `messages` is for /v1/chat/completions." if "messages" in body else ""
        raise InvalidRequest(f"`input` must be a string or an array of items.{other}", param="input")
    return given


def items_before_answer(items: list[Any]) -> list[Any]:
    """Returns the items without those of an answer at their end, which is unfinished, or would not be the last."""
    end = len(items)
    while end and _is_said(items[end - 1]):
        end -= 1
    return items[:end]


def _is_said(item: Any) -> bool:
    """Returns whether an item is of an answer, but no call."""
    kind = _kind_of(item) if isinstance(item, dict) else ""
    return kind in _UNTOLD or (kind == "message" and item.get("role") == "assistant")


def _kind_of(item: JsonObject) -> Any:
    return item.get("type") or ("message" if "role" in item else "item_reference")


def added_tools(items: list[Any]) -> list[tuple[str, Any]]:
    """Returns the tools that items of the type `additional_tools` bring, with their places in the request."""
    bringing = [
        (f"input[{index}].tools", item.get("tools"))
        for index, item in enumerate(items)
        if isinstance(item, dict) and item.get("type") == "additional_tools"
    ]
    return [
        (f"{where}[{index}]", tool)
        for where, tools in bringing
        if isinstance(tools, list)
        for index, tool in enumerate(tools)
    ]


def read_transcript(body: JsonObject, items: list[Any], tools: OfferedTools, rules: RequestRules) -> list[Message]:
    """Returns the messages of the `instructions` and of all items. Items of unknown types are passed over."""
    found: list[Message] = []
    instructions = body.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        raise InvalidRequest("`instructions` must be a string.", param="instructions")
    if instructions:
        found.append(Message("system", storable_text(instructions)))
    for role, group in groupby(_read_items(items, tools, rules), lambda message: message.role):
        messages = [*group]
        found += [_join(messages)] if role == "assistant" else messages
    return found


def _join(parts: Sequence[Message]) -> Message:
    text = "\n\n".join(part.text for part in parts if part.text)
    return replace(parts[0], text=text, tool_calls=tuple(call for part in parts for call in part.tool_calls))


def _read_items(items: list[Any], tools: OfferedTools, rules: RequestRules) -> Iterator[Message]:
    for index, item in enumerate(items):
        where = f"input[{index}]"
        if not isinstance(item, dict):
            raise InvalidRequest(f"`{where}` must be an object.", param=where)
        kind = _kind_of(item)
        if kind == "message":
            yield _read_message(item, where, rules)
        elif kind in _CALLS:
            yield Message("assistant", tool_calls=(_read_call(item, tools),))
        elif kind in _RESULTS:
            yield _read_result(item, where, rules)
        elif kind in _UNTOLD:
            yield Message("assistant")


def _read_message(item: JsonObject, where: str, rules: RequestRules) -> Message:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidRequest(f"`{where}.role` must be one of {', '.join(_ROLES)}.", param=f"{where}.role")
    content = item.get("content")
    text, images = parse_content(content, _ROLES[role], f"{where}.content", image_urls=rules.image_urls)
    return Message(_ROLES[role], text, images=images)


def _read_call(item: JsonObject, tools: OfferedTools) -> ToolCall:
    """Returns a call of the transcript. A malformed one is kept, because only the ids of calls matter."""
    namespace = item.get("namespace")
    name = tools.spec_name(str(item.get("name", "")), namespace if isinstance(namespace, str) else "")
    given: Any = item.get("arguments")
    if item.get("type") == "custom_tool_call":
        given = {FREE_TEXT: item.get("input", "")}
    arguments = given if isinstance(given, str) else json.dumps({} if given is None else given, ensure_ascii=False)
    return ToolCall(storable_text(str(item.get("call_id", ""))), storable_text(name), storable_json(arguments))


def _read_result(item: JsonObject, where: str, rules: RequestRules) -> Message:
    call_id = item.get("call_id")
    if not isinstance(call_id, str) or not call_id:
        raise InvalidRequest(
            f"`{where}.call_id` must be the id of the call that this is the output of.", param=f"{where}.call_id"
        )
    text, images = parse_content(item.get("output"), "tool", f"{where}.output", image_urls=rules.image_urls)
    check_result_length(text, f"{where}.output", rules.longest_result)
    # OpenAI has no field for errors. These are the fields that some clients use.
    is_error = item.get("is_error") is True or item.get("status") == "error"
    return Message("tool", text, images=images, tool_call_id=storable_text(call_id), is_error=is_error)
