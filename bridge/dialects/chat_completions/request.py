"""The client's JSON -> Turn, or an InvalidRequest that names the field.

Known fields are checked; unknown ones are accepted and ignored, as clients send many of their own.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from bridge.dialects.chat_completions.parameters import check_parameters, wanted_format
from bridge.dialects.openai.content import parse_content, storable
from bridge.dialects.openai.tools import parse_tool_choice, parse_tools
from bridge.errors import InvalidRequest, TooDeep
from bridge.turn import JsonObject, Message, ToolCall, Turn

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
DEEPEST = 72
# Behind the name of a model: this request is not for the agent's memory.
ASIDE = ":aside"


def parse_json(body: bytes, deepest: int = DEEPEST) -> JsonObject:
    """The body as a JSON object. What two readers could take for two things is refused: NaN, a name that stands twice.

    NaN and Infinity are no JSON, and of two fields of one name every reader takes the one that it likes.
    """
    if not body.strip():
        raise InvalidRequest(
            "The request body is empty; send a JSON object with `model` and `messages`.", code="invalid_json"
        )
    try:
        value = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_without_twins)
    except RecursionError:
        raise _too_deep(deepest) from None
    except (ValueError, UnicodeDecodeError) as fault:
        raise InvalidRequest(f"The request body is not valid JSON: {fault}.", code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidRequest("The request body must be a JSON object.", code="invalid_json")
    if _is_deeper(value, deepest):
        raise _too_deep(deepest)
    return value


def parse_chat_request(body: JsonObject, *, most_tools: int = 512, image_urls: bool = False) -> Turn:
    model = body.get("model")
    model = storable(model).strip() if isinstance(model, str) else ""
    if not model:
        raise InvalidRequest("`model` must be the name or id of an agent; GET /v1/models lists them.", param="model")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("`messages` must be an array with at least one message.", param="messages")
    options = body.get("stream_options")
    choice_is_none = body.get("tool_choice") == "none"
    tools = () if choice_is_none else parse_tools(body, most_tools)
    check_parameters(body)
    return Turn(
        model=model.removesuffix(ASIDE),
        aside=model.endswith(ASIDE),
        reply_format=wanted_format(body),
        messages=tuple(_message(item, f"messages[{index}]", image_urls) for index, item in enumerate(messages)),
        tools=tools,
        tool_choice=parse_tool_choice(body, tools),
        parallel_tool_calls=body.get("parallel_tool_calls") is None or _flag(body, "parallel_tool_calls"),
        stream=_flag(body, "stream"),
        include_usage=_flag(options, "include_usage", "stream_options.") if isinstance(options, dict) else False,
    )


def _message(value: Any, where: str, image_urls: bool) -> Message:
    if not isinstance(value, dict):
        raise InvalidRequest(f"`{where}` must be an object.", param=where)
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise InvalidRequest(f"`{where}.role` must be one of {', '.join(ROLES)}.", param=f"{where}.role")
    name = value.get("name")
    call_id = value.get("tool_call_id")
    if role == "tool" and not (isinstance(call_id, str) and call_id):
        raise InvalidRequest(
            f"`{where}.tool_call_id` must be the id of the tool call that this is the result of.",
            param=f"{where}.tool_call_id",
        )
    text, images = parse_content(value.get("content"), ROLES[role], f"{where}.content", image_urls=image_urls)
    return Message(
        role=ROLES[role],  # type: ignore[arg-type]
        text=text,
        images=images,
        name=name if isinstance(name, str) else "",
        tool_calls=_calls(value.get("tool_calls")),
        tool_call_id=call_id if isinstance(call_id, str) else "",
        # OpenAI has no field for it; these are what clients of other makes use.
        is_error=value.get("is_error") is True or value.get("status") == "error",
    )


def _calls(value: Any) -> tuple[ToolCall, ...]:
    """The calls of an echoed assistant message; only their ids matter, so nothing here is refused."""
    calls = []
    for item in value if isinstance(value, list) else ():
        function = item.get("function") if isinstance(item, dict) else None
        if isinstance(function, dict):
            name = storable(str(function.get("name", "")))
            calls.append(ToolCall(str(item.get("id", "")), name, _arguments(function.get("arguments"))))
    return tuple(calls)


def _arguments(value: Any) -> str:
    """As JSON text: some clients echo the object that they made of it. An agent may be shown it beside the result."""
    return storable(value) if isinstance(value, str) else json.dumps({} if value is None else value)


def _flag(body: JsonObject, name: str, prefix: str = "") -> bool:
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(f"`{prefix}{name}` must be true or false.", param=prefix + name)
    return value


def _is_deeper(value: Any, deepest: int) -> bool:
    """Without recursion: nothing may recurse into it before its depth is known."""
    waiting = [(value, 1)]
    while waiting:
        item, depth = waiting.pop()
        if depth > deepest:
            return True
        inner = item.values() if isinstance(item, dict) else item
        waiting.extend((part, depth + 1) for part in inner if isinstance(part, dict | list))
    return False


def _too_deep(deepest: int) -> TooDeep:
    return TooDeep(f"The request body is nested more than {deepest} levels deep.")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twin = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {twin!r:.80} stands twice in one object")
    return found


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits:.20} is out of range")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
