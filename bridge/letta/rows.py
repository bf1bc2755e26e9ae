"""Turns the JSON of Letta's agents, tools, blocks and messages into our types. Missing fields get their default."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from bridge.letta.capabilities import AgentModel
from bridge.letta.gateway import Agent, AgentSummary, Block, StoredMessage, Tool
from bridge.turn import AgentCall, JsonObject


def agent_summary(row: JsonObject) -> AgentSummary:
    return AgentSummary(id=text(row.get("id")), name=text(row.get("name")), created=_epoch(row.get("created_at")))


def agent(row: JsonObject) -> Agent:
    return Agent(
        id=text(row.get("id")),
        name=text(row.get("name")),
        type=text(row.get("agent_type")),
        tools=tuple(map(tool, _objects(row.get("tools")))),
        rules=_objects(row.get("tool_rules")),
        message_ids=tuple(item for item in row.get("message_ids") or () if isinstance(item, str)),
        blocks=tuple(map(block, _objects(_memory_blocks(row)))),
        parallel_calls=_object(row.get("llm_config")).get("parallel_tool_calls") is True,
        metadata=_object(row.get("metadata")),
        model=_model(_object(row.get("llm_config"))),
        sleeptime=row.get("enable_sleeptime") is True,
    )


def _model(config: JsonObject) -> AgentModel:
    return AgentModel(text(config.get("model")), text(config.get("model_endpoint_type")))


def tool(row: JsonObject) -> Tool:
    return Tool(
        id=text(row.get("id")),
        name=text(row.get("name")),
        type=text(row.get("tool_type")) or "custom",
        tags=tuple(item for item in row.get("tags") or () if isinstance(item, str)),
        json_schema=_object(row.get("json_schema")),
        source=text(row.get("source_code")),
    )


def block(row: JsonObject) -> Block:
    return Block(
        id=text(row.get("id")),
        label=text(row.get("label")),
        value=text(row.get("value")),
        metadata=_object(row.get("metadata")),
    )


def stored_message(row: JsonObject, *, packed: bool = False) -> StoredMessage:
    """`packed`: the server lists what a tool returned in the JSON that the model sees (up to 0.7)."""
    kind, message_id = text(row.get("message_type")), text(row.get("id"))
    listed = _objects(row.get("tool_calls")) or _objects([row.get("tool_call")])
    calls = tuple(
        AgentCall(
            message_id, text(call.get("tool_call_id")), text(call.get("name")), text(call.get("arguments")), True, index
        )
        for index, call in enumerate(listed)
    )
    returned = text(row.get("tool_return"))
    said = _unpacked(returned) if packed else returned
    returns = {text(one.get("tool_call_id")): text(one.get("tool_return")) for one in _objects(row.get("tool_returns"))}
    said = said or text(row.get("reasoning")) or _said(row.get("content"))
    return StoredMessage(message_id, kind, calls, said, returns, text(row.get("otid")))


def variables(row: JsonObject) -> dict[str, str]:
    listed = _objects(row.get("tool_exec_environment_variables"))
    return {text(variable.get("key")): text(variable.get("value")) for variable in listed}


def _unpacked(returned: str) -> str:
    try:
        wrapping = json.loads(returned)
    except ValueError:
        return returned
    return text(wrapping.get("message")) if isinstance(wrapping, dict) else returned


def _said(content: Any) -> str:
    """Reads text that is a string or a list of text parts."""
    return text(content) or "".join(text(part.get("text")) for part in _objects(content))


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _memory_blocks(row: JsonObject) -> Any:
    return _object(row.get("memory")).get("blocks") or row.get("blocks")


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> tuple[JsonObject, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _epoch(value: Any) -> int:
    """Returns seconds since 1970. Servers on SQLite leave the time zone out; it is UTC."""
    try:
        moment = datetime.fromisoformat(text(value))
    except ValueError:
        return 0
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
