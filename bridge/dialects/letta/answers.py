"""Reads the answers to calls of client tools, which Letta's own API calls approvals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bridge.dialects.base import RequestRules
from bridge.dialects.letta.content import parse_content
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.dialects.openai.transcript import check_result_length
from bridge.errors import InvalidRequest
from bridge.json_text import storable_text
from bridge.turn import Image, JsonObject, ToolResult

# Letta's own words for what a client decides instead of giving a result.
DENIED = "Error: request to call tool denied. User reason: {reason}"
APPROVED = "Tool not found"


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The answer to one call: its result, its pictures, and what the client says of the tool's output."""

    result: ToolResult
    images: tuple[Image, ...] = ()
    stdout: Any = None
    stderr: Any = None


def is_answer(item: JsonObject) -> bool:
    return item.get("type") == "approval"


def _answers_in(body: JsonObject) -> Iterator[JsonObject]:
    messages = body.get("messages")
    for item in messages if isinstance(messages, list) else ():
        if isinstance(item, dict) and is_answer(item):
            yield item


def answered_call_ids(body: JsonObject) -> Iterator[str]:
    """Yields the ids of the calls that a request answers. Passes over what is malformed."""
    for item in _answers_in(body):
        given = item.get("approvals")
        for answer in given if isinstance(given, list) else ():
            if isinstance(answer, dict) and isinstance(answer.get("tool_call_id"), str):
                yield answer["tool_call_id"]
        request_id = item.get("approval_request_id")
        if not given and isinstance(request_id, str):
            yield _call_of_request(request_id)


def may_decide_on_own_tool(body: JsonObject) -> bool:
    """Returns whether a request may decide on a call of the agent's own tool: it has answers, and no id of the bridge.
    The older form names the message that has the call, so it may be of either kind.
    """
    listed = [item.get("approvals") for item in _answers_in(body)]
    calls = [call for given in listed if isinstance(given, list) for call in given if isinstance(call, dict)]
    return bool(listed) and not any(CALL_IDS.message_and_index(str(call.get("tool_call_id"))) for call in calls)


def _call_of_request(request_id: str) -> str:
    """Returns the id of the first call in the message `request_id`, "" if that is no id of a message."""
    try:
        return CALL_IDS.id_in_message(request_id, 0)
    except ValueError:
        return ""


def read_answers(item: JsonObject, where: str, rules: RequestRules) -> list[GivenAnswer]:
    """Returns the answers in one item of `messages`. The older form decides on the only call of a request."""
    given = item.get("approvals")
    if given is None:
        place = f"{where}.approval_request_id"
        call_id = _call_of_request(str(item.get("approval_request_id")))
        if not call_id:
            raise InvalidRequest(f"`{where}` must have `approvals`, or `approval_request_id`.", param=place)
        return [_read_decision({**item, "tool_call_id": call_id}, where)]
    if not isinstance(given, list):
        raise InvalidRequest(f"`{where}.approvals` must be an array.", param=f"{where}.approvals")
    return [_read_answer(value, f"{where}.approvals[{index}]", rules) for index, value in enumerate(given)]


def _read_answer(value: Any, where: str, rules: RequestRules) -> GivenAnswer:
    if not isinstance(value, dict) or not isinstance(value.get("tool_call_id"), str):
        raise InvalidRequest(f"`{where}.tool_call_id` must be a string.", param=f"{where}.tool_call_id")
    if value.get("type") == "approval" or value.get("approve") is not None:
        return _read_decision(value, where)
    place = f"{where}.tool_return"
    text, images = parse_content(value.get("tool_return"), place, image_urls=rules.image_urls)
    check_result_length(text, place, rules.longest_result)
    result = ToolResult(value["tool_call_id"], text, is_error=value.get("status") == "error")
    return GivenAnswer(result, images, value.get("stdout"), value.get("stderr"))


def _read_decision(value: JsonObject, where: str) -> GivenAnswer:
    """Returns a denial, or an approval, as the result that Letta makes of it: a client's tool can't run on a server."""
    approve, reason = value.get("approve"), value.get("reason")
    if not isinstance(approve, bool):
        raise InvalidRequest(f"`{where}.approve` must be true or false.", param=f"{where}.approve")
    text = APPROVED if approve else DENIED.format(reason=reason if isinstance(reason, str) else None)
    return GivenAnswer(ToolResult(value["tool_call_id"], storable_text(text), is_error=True))
