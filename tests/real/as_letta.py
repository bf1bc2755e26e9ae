"""Sends what a test says in the words of Chat Completions through Letta's own API, and reads the answer back.

So the scenarios for real servers are the same for both. Letta keeps the conversation: only what is new is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from bridge import sse
from tests.letta_replies import LettaReply
from tests.sse_checker import Json

_FINISH = {"requires_approval": "tool_calls", "max_tokens_exceeded": "length"}
_SENT_OTHERWISE = ("model", "messages", "tools", "stream", "stream_options", "otid")


def letta_body(body: Json) -> Json:
    """Returns the request of a chat body: its messages after the last reply, and the tools as client tools. A field
    `otid` names the messages.
    """
    left = {name: value for name, value in body.items() if name not in _SENT_OTHERWISE}
    named = {"otid": body["otid"]} if "otid" in body else {}
    tools = [tool["function"] for tool in body.get("tools") or ()]
    form = {"stream_tokens": True} if body["stream"] and tools else {}
    items = [{**item, **named} for item in _items(body["messages"])]
    return {"messages": items, **left, **form, **({"client_tools": tools} if tools else {})}


def _items(messages: Sequence[Json]) -> Iterator[Json]:
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    new = messages[replies[-1] + 1 :] if replies else messages
    for are_results, group in groupby(new, lambda message: message["role"] == "tool"):
        if are_results:
            yield {"type": "approval", "approvals": [_answer(message) for message in group]}
        else:
            yield from ({"role": message["role"], "content": message["content"]} for message in group)


def _answer(message: Json) -> Json:
    failed = message.get("is_error") or message.get("status") == "error"
    return {
        "type": "tool",
        "tool_call_id": message["tool_call_id"],
        "tool_return": message["content"],
        "status": "error" if failed else "success",
    }


def chat_message(messages: Sequence[Json], stop_reason: str) -> tuple[Json, str]:
    """Returns the message and the finish reason that a chat reply with the same messages has."""
    texts, thoughts = (
        _texts(messages, "assistant_message", "content"),
        _texts(messages, "reasoning_message", "reasoning"),
    )
    asked = [
        call for one in messages if one["message_type"] == "approval_request_message" for call in one["tool_calls"]
    ]
    message: Json = {"role": "assistant", "content": "\n\n".join(texts)}
    if thoughts:
        message["reasoning_content"] = "\n\n".join(thoughts)
    if asked:
        message["tool_calls"] = [
            {
                "id": call["tool_call_id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in asked
        ]
    return message, _FINISH.get(stop_reason, "stop")


def _texts(messages: Sequence[Json], kind: str, field: str) -> list[str]:
    found = [message for message in messages if message["message_type"] == kind]
    return ["".join(one[field] for one in pieces) for _, pieces in groupby(found, lambda message: message["id"])]


def chat_error(answer: Mapping[str, Any]) -> Json:
    """Returns what a chat reply says of the same error."""
    detail = answer["detail"]
    return detail if isinstance(detail, dict) else {"code": answer.get("code"), "message": detail}


def read_letta_answer(content: bytes, stream: bool) -> LettaReply:
    """Reads an answer of Letta itself, to a message without client tools, in the form of any version."""
    if not stream:
        body = json.loads(content)
        return LettaReply(body["messages"], (body.get("stop_reason") or {}).get("stop_reason", ""), body["usage"])
    said = [(name, json.loads(data)) for name, data in sse.decode_events([content]) if data not in (sse.DONE, "")]
    failure = next((value for name, value in said if name == "error"), None)
    by_kind = {value.get("message_type"): value for _, value in said}
    stop_reason = by_kind.get("stop_reason", {}).get("stop_reason", "")
    messages = [value for name, value in said if name != "error" and "id" in value]
    return LettaReply(messages, stop_reason, by_kind.get("usage_statistics", {}), failure=failure)
