"""OpenAI's rules for the messages of a request. Pure.

The most important rule: after an assistant message with calls come exactly one `tool` message for each call, before any
other message, and there is no other `tool` message.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.model.refusal import Refusal
from testbed.model.values import above_length, array_refusal, invalid_type, invalid_value, missing, name_refusals

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS = {"user": ("text", "image_url", "input_audio", "file"), "assistant": ("text", "refusal")}
ONLY_TEXT = ("text",)

MOST_MESSAGES = 2048 * 1024
MOST_CALLS = 128
LONGEST_ID = 40
LONGEST_TEXT = 10_485_760
SPEAKER = re.compile(r"[^\s<|\\/>]+\Z")


def transcript_refusals(messages: Any) -> Iterator[Refusal]:
    """Yields the reasons to refuse these messages, in OpenAI's order."""
    yield from array_refusal("messages", messages, MOST_MESSAGES)
    for index, message in enumerate(messages):
        yield from _message(index, message)
    yield from _pairing(messages)


def _message(index: int, message: Any) -> Iterator[Refusal]:
    where = f"messages[{index}]"
    if not isinstance(message, Mapping):
        yield invalid_type(where, "an object", message)
        return
    role = message.get("role")
    if role is None:
        yield missing(f"{where}.role")
    elif role not in ROLES:
        yield invalid_value(f"{where}.role", role, ROLES)
    name = message.get("name")
    if name is not None and not (isinstance(name, str) and SPEAKER.match(name)):
        yield Refusal(
            f"Invalid '{where}.name': string does not match pattern. Expected a string that matches the pattern "
            "'^[^\\s<|\\\\/>]+$'.",
            f"{where}.name",
            "invalid_value",
        )
    if role == "assistant":
        yield from _calls(where, message)
    if role == "tool" and not message.get("tool_call_id"):
        yield Refusal(
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
            f"messages.[{index}].tool_call_id",
        )
    yield from _content(index, message)


def _content(index: int, message: Mapping[str, Any]) -> Iterator[Refusal]:
    content, where = message.get("content"), f"messages[{index}].content"
    if content is None:
        if not any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio")):
            yield Refusal("Invalid value for 'content': expected a string, got null.", f"messages.[{index}].content")
    elif isinstance(content, str):
        if len(content) > LONGEST_TEXT:
            yield above_length(where, content, LONGEST_TEXT)
    elif isinstance(content, list):
        yield from array_refusal(where, content, MOST_MESSAGES)
        for number, part in enumerate(content):
            yield from _part(f"{where}[{number}]", part, str(message.get("role")))
    else:
        yield Refusal(
            f"Invalid type for '{where}': expected one of a string or array of objects, but got "
            f"{type(content).__name__} instead.",
            where,
            "invalid_type",
        )


def _part(where: str, part: Any, role: str) -> Iterator[Refusal]:
    if not isinstance(part, Mapping):
        yield invalid_type(where, "an object", part)
        return
    kind = part.get("type")
    if kind is None:
        yield missing(f"{where}.type")
    elif kind not in PARTS.get(role, ONLY_TEXT):
        yield invalid_value(f"{where}.type", kind, PARTS.get(role, ONLY_TEXT))
    elif kind == "text" and not isinstance(part.get("text"), str):
        yield invalid_type(f"{where}.text", "a string", part.get("text"))
    elif kind == "image_url" and not isinstance((part.get("image_url") or {}).get("url"), str):
        yield missing(f"{where}.image_url.url")


def _calls(where: str, message: Mapping[str, Any]) -> Iterator[Refusal]:
    calls = message.get("tool_calls")
    if calls is None:
        return
    yield from array_refusal(f"{where}.tool_calls", calls, MOST_CALLS)
    for number, call in enumerate(calls):
        yield from _call(f"{where}.tool_calls[{number}]", call)


def _call(where: str, call: Any) -> Iterator[Refusal]:
    if not isinstance(call, Mapping):
        yield invalid_type(where, "an object", call)
        return
    yield from _call_id(f"{where}.id", call.get("id"))
    if call.get("type") != "function":
        yield invalid_value(f"{where}.type", call.get("type"), ("function",))
    function = call.get("function")
    if not isinstance(function, Mapping):
        yield missing(f"{where}.function")
        return
    yield from name_refusals(f"{where}.function.name", function.get("name"))
    if not isinstance(function.get("arguments"), str):
        yield invalid_type(f"{where}.function.arguments", "a string", function.get("arguments"))


def _call_id(where: str, value: Any) -> Iterator[Refusal]:
    if value is None:
        yield missing(where)
    elif not isinstance(value, str):
        yield invalid_type(where, "a string", value)
    elif not value:
        yield Refusal(
            f"Invalid '{where}': empty string. Expected a string with minimum length 1, but got an empty string "
            "instead.",
            where,
            "empty_string",
        )
    elif len(value) > LONGEST_ID:
        yield above_length(where, value, LONGEST_ID)


def _pairing(messages: list[Any]) -> Iterator[Refusal]:
    open_ids: list[str] = []
    answered: dict[str, int] = {}
    asking = False
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            yield from _answer(index, message["tool_call_id"], asking, open_ids, answered)
            continue
        if open_ids:
            yield _unanswered(index, open_ids)
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        asking, answered = bool(open_ids), {}
        if len(set(open_ids)) < len(open_ids):
            yield Refusal(
                f"Invalid parameter: Duplicate value for 'id' in 'tool_calls' of messages[{index}].",
                f"messages.[{index}].tool_calls",
            )
    if open_ids:
        yield _unanswered(len(messages), open_ids)


def _answer(index: int, call_id: str, asking: bool, open_ids: list[str], answered: dict[str, int]) -> Iterator[Refusal]:
    """Checks one tool message and removes its call from the open ones."""
    if not asking:
        yield Refusal(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            f"messages.[{index}].role",
        )
    elif call_id in answered:
        yield Refusal(
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in "
            f"messages[{answered[call_id]}] and messages[{index}].",
            f"messages.[{index}].tool_call_id",
        )
    elif call_id not in open_ids:
        yield Refusal(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous message.",
            f"messages.[{index}].tool_call_id",
        )
    else:
        open_ids.remove(call_id)
        answered[call_id] = index


def _unanswered(index: int, open_ids: list[str]) -> Refusal:
    return Refusal(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_ids)}",
        f"messages.[{index}].role",
    )
