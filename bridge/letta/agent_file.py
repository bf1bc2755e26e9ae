"""Writes agent files: agents with a history in their context, in the two forms that Letta imports. Pure functions.

Letta has no other call that stores calls and results as such. A file never has the source of a tool, because Letta
would change the tool of that name for all agents.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from bridge.letta.capabilities import V1_AGENT, ServerFeatures
from bridge.letta.gateway import CallResult
from bridge.turn import Image, JsonObject, Message, ToolCall

_AGENT_ID = "agent-0"
_SEND_MESSAGE = "send_message"
_ANSWER_PARAMETERS = {
    "type": "object",
    "properties": {"message": {"type": "string", "description": "The message."}},
    "required": ["message"],
}


def make_agent_file(agent: JsonObject, history: Sequence[Message], features: ServerFeatures) -> JsonObject:
    """Returns the file for an agent whose other fields are those of `agent`, as in a request to make an agent. Calls of
    the last message without results are held.
    """
    rows = [_row("system", agent["system"]), *_history_rows(agent, history, features)]
    if history[-1].tool_calls:
        rows[-1] = {**rows[-1], "role": "approval"}
    now = datetime.now(UTC).isoformat()
    if features.lists_in_agent_files:
        return _file_with_list(agent, rows, now)
    return _file_of_one_agent(agent, rows, now)


def _file_with_list(agent: JsonObject, rows: Sequence[JsonObject], now: str) -> JsonObject:
    messages = [{"id": f"message-{number}", "created_at": now, **row} for number, row in enumerate(rows)]
    shown = [message["id"] for message in messages]
    listed = {**agent, "id": _AGENT_ID, "messages": messages, "in_context_message_ids": shown}
    others = dict.fromkeys(("groups", "blocks", "files", "sources", "tools", "mcp_servers"), ())
    return {"agents": [listed], **others, "metadata": {}, "created_at": now}


def _file_of_one_agent(agent: JsonObject, rows: Sequence[JsonObject], now: str) -> JsonObject:
    """Letta asks for all fields. It finds its own tools by name, and does not change them."""
    times = {"created_at": now, "updated_at": now}
    optional: dict[str, Any] = {
        "group_id": None,
        "model": None,
        "name": None,
        "tool_call_id": None,
        "tool_calls": [],
        "tool_returns": [],
    }
    return {
        **{name: agent[name] for name in ("name", "agent_type", "system", "llm_config", "embedding_config")},
        "messages": [{**optional, **times, **row} for row in rows],
        "in_context_message_indices": list(range(len(rows))),
        "tools": [{**_own_tool(name), **times} for name in agent["tools"]],
        "tags": [{"tag": tag} for tag in agent["tags"]],
        **dict.fromkeys(("core_memory", "tool_exec_environment_variables", "tool_rules"), ()),
        **dict.fromkeys(("description", "multi_agent_group"), None),
        "message_buffer_autoclear": False,
        "version": "",
        **times,
    }


def _own_tool(name: str) -> JsonObject:
    return {
        "name": name,
        "tool_type": "letta_core",
        "description": "",
        "json_schema": {"name": name, "description": "", "parameters": _ANSWER_PARAMETERS},
        "args_json_schema": None,
        "return_char_limit": 1000,
        "source_code": None,
        "source_type": "python",
        "tags": [],
    }


def _history_rows(agent: JsonObject, history: Sequence[Message], features: ServerFeatures) -> Iterator[JsonObject]:
    for number, message in enumerate(history):
        if message.role == "tool":
            yield _return_row(CallResult(message.tool_call_id, message.text, not message.is_error))
        elif message.role == "user":
            yield _user_row(message, features)
        elif agent["agent_type"] == V1_AGENT:
            yield from _assistant_rows(message)
        else:
            yield from _rows_with_send_message(message, f"call_said_{number}")


def _user_row(message: Message, features: ServerFeatures) -> JsonObject:
    if features.packs_user_messages:
        return _row("user", json.dumps({"type": "user_message", "message": message.text}, ensure_ascii=False))
    linked = [f"(a picture: {image.url})" for image in message.images if image.url]
    # Before Letta 0.12, a message without text fails every run.
    text = "\n".join([*([message.text] if message.text else []), *linked]) or "(pictures)"
    return {"role": "user", "content": [_text(text), *(_image(image) for image in message.images if not image.url)]}


def _assistant_rows(message: Message) -> Iterator[JsonObject]:
    """Yields a text before the calls by itself, because letta_v1_agent leaves out the text beside earlier calls."""
    if message.text:
        yield _row("assistant", message.text)
    if message.tool_calls:
        yield _call_row(message.tool_calls)


def _rows_with_send_message(message: Message, call_id: str) -> Iterator[JsonObject]:
    """Yields a text as such agents say it: by send_message, or beside calls as the thought of the calls."""
    if message.tool_calls:
        yield {**_call_row(message.tool_calls), "content": [_text(message.text)] if message.text else []}
    else:
        arguments = json.dumps({"message": message.text}, ensure_ascii=False)
        yield _call_row([ToolCall(call_id, _SEND_MESSAGE, arguments)])
        yield _return_row(CallResult(call_id, "None"))


def _call_row(calls: Sequence[ToolCall]) -> JsonObject:
    return {"role": "assistant", "content": [], "tool_calls": list(map(_call, calls))}


def _call(call: ToolCall) -> JsonObject:
    function = {"name": call.name, "arguments": _arguments_object(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _arguments_object(arguments: str) -> str:
    """Returns the arguments of a call, with text that is not a JSON object put into one: it would fail every run."""
    try:
        is_object = isinstance(json.loads(arguments), dict)
    except (ValueError, RecursionError):
        is_object = False
    return arguments if is_object else json.dumps({"arguments": arguments} if arguments.strip() else {})


def _return_row(result: CallResult) -> JsonObject:
    """Packs the text as Letta packs what a tool returns, but without the time, which is not known."""
    packed = json.dumps({"status": "OK" if result.ok else "Failed", "message": result.text}, ensure_ascii=False)
    status = "success" if result.ok else "error"
    returned = {"tool_call_id": result.call_id, "status": status, "func_response": packed}
    return {**_row("tool", packed), "tool_call_id": result.call_id, "tool_returns": [returned]}


def _row(role: str, text: str) -> JsonObject:
    return {"role": role, "content": [_text(text)]}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _image(image: Image) -> JsonObject:
    """Letta before 0.12 imports pictures only in the form in which it stores them itself."""
    source = {"type": "letta", "file_id": f"file-{uuid.uuid4()}", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": {**source, "detail": image.detail}}
