"""Sends what a test says in the words of Chat Completions through the Responses API, and reads the answer back.

So the scenarios for real servers are the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.sse_checker import Json

_STATUS = {"completed": "stop", "incomplete": "length"}


def responses_body(body: Json) -> Json:
    """Returns the request of a chat body. Fields that both have stay as they are."""
    left = {name: value for name, value in body.items() if name not in ("messages", "tools", "stream_options")}
    choice, form = left.get("tool_choice"), left.pop("response_format", None)
    if isinstance(choice, dict):
        left["tool_choice"] = {"type": "function", **choice["function"]}
    if form is not None:
        left["text"] = {"format": {"type": form["type"], "name": "form", **form.get("json_schema", {})}}
    tools = [{"type": "function", **tool["function"]} for tool in body.get("tools") or ()]
    return {**left, "input": [*_items(body["messages"])], **({"tools": tools} if tools else {})}


def _items(messages: Sequence[Json]) -> Iterator[Json]:
    for message in messages:
        content = message.get("content")
        if message["role"] == "tool":
            more = {name: message[name] for name in ("is_error", "status") if name in message}
            yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": content, **more}
        elif message["role"] != "assistant":
            yield {"role": message["role"], "content": content}
        elif content:
            yield {"role": "assistant", "content": [{"type": "output_text", "text": content, "annotations": []}]}
        for call in message.get("tool_calls", ()):
            yield {"type": "function_call", "call_id": call["id"], "status": "completed", **call["function"]}


def chat_message(response: Mapping[str, Any]) -> tuple[Json, str]:
    """Returns the message and the finish reason that a chat reply with the same items has."""
    texts = ["".join(part["text"] for part in item["content"]) for item in _of(response, "message")]
    thoughts = ["".join(part["text"] for part in item["summary"]) for item in _of(response, "reasoning")]
    calls = [
        {
            "id": item["call_id"],
            "type": "function",
            "function": {"name": item["name"], "arguments": item["arguments"]},
        }
        for item in _of(response, "function_call")
    ]
    message: Json = {"role": "assistant", "content": "\n\n".join(texts)}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message, "tool_calls" if calls else _STATUS[response["status"]]


def _of(response: Mapping[str, Any], kind: str) -> list[Json]:
    return [item for item in response["output"] if item["type"] == kind]
