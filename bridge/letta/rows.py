"""Turns Letta's JSON of agents, tools, blocks and messages into the bridge's types. Missing fields get a default."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bridge.letta.capabilities import AgentModel
from bridge.letta.gateway import Agent, AgentSummary, Block, StoredMessage, Tool
from bridge.turn import AgentCall, JsonObject


def agent_summary_from_row(row: JsonObject) -> AgentSummary:
    return AgentSummary(text_of(row.get("id")), text_of(row.get("name")), _unix_time(row.get("created_at")))


def agent_from_row(row: JsonObject) -> Agent:
    return make_agent(
        id=text_of(row.get("id")),
        name=text_of(row.get("name")),
        type=text_of(row.get("agent_type")),
        tools=tuple(map(tool_from_row, _objects_of(row.get("tools")))),
        rules=_objects_of(row.get("tool_rules")),
        message_ids=[item for item in row.get("message_ids") or () if isinstance(item, str)],
        blocks=_objects_of(_memory_blocks(row)),
        config=_object_of(row.get("llm_config")),
        metadata=_object_of(row.get("metadata")),
        sleeptime=row.get("enable_sleeptime") is True,
        clears_context=row.get("message_buffer_autoclear") is True,
    )


def make_agent(
    *,
    rules: Sequence[JsonObject],
    message_ids: Sequence[str],
    blocks: Sequence[JsonObject],
    config: JsonObject,
    **fields: Any,
) -> Agent:
    """Returns an agent: `blocks` and `config` as Letta sends them, the other fields as the agent has them."""
    return Agent(
        rules=tuple(rules),
        message_ids=tuple(message_ids),
        blocks=tuple(map(block_from_row, blocks)),
        parallel_calls=config.get("parallel_tool_calls") is True,
        model=AgentModel(text_of(config.get("model")), text_of(config.get("model_endpoint_type"))),
        **fields,
    )


def imported_agent_id(answer: JsonObject) -> str:
    """Returns the id of an imported agent, "" if invalid. Letta before 0.11 answers with the whole agent."""
    listed = answer.get("agent_ids")
    return text_of(listed[0]) if isinstance(listed, list) and listed else text_of(answer.get("id"))


def tool_from_row(row: JsonObject) -> Tool:
    return Tool(
        id=text_of(row.get("id")),
        name=text_of(row.get("name")),
        type=text_of(row.get("tool_type")) or "custom",
        tags=tuple(item for item in row.get("tags") or () if isinstance(item, str)),
        json_schema=_object_of(row.get("json_schema")),
        source=text_of(row.get("source_code")),
    )


def block_from_row(row: JsonObject) -> Block:
    return Block(
        id=text_of(row.get("id")),
        label=text_of(row.get("label")),
        value=text_of(row.get("value")),
        metadata=_object_of(row.get("metadata")),
    )


def message_from_row(row: JsonObject, *, packed: bool = False) -> StoredMessage:
    """`packed`: the server lists what a tool returned inside of JSON, as the model sees it (before Letta 0.8)."""
    kind, message_id = text_of(row.get("message_type")), text_of(row.get("id"))
    listed = _objects_of(row.get("tool_calls")) or _objects_of([row.get("tool_call")])
    calls = tuple(_call_from_row(call, message_id, index) for index, call in enumerate(listed))
    returned = text_of(row.get("tool_return"))
    said = _unpack_return(returned) if packed else returned
    returns = {
        text_of(one.get("tool_call_id")): text_of(one.get("tool_return"))
        for one in _objects_of(row.get("tool_returns"))
    }
    said = said or text_of(row.get("reasoning")) or join_text_parts(row.get("content"))
    return StoredMessage(message_id, kind, calls, said, returns, text_of(row.get("otid")))


def _call_from_row(row: JsonObject, message_id: str, index: int) -> AgentCall:
    call_id, name, arguments = (text_of(row.get(field)) for field in ("tool_call_id", "name", "arguments"))
    return AgentCall(message_id, call_id, name, arguments, held=True, index=index)


def variables_from_row(row: JsonObject) -> dict[str, str]:
    listed = _objects_of(row.get("tool_exec_environment_variables"))
    return {text_of(variable.get("key")): text_of(variable.get("value")) for variable in listed}


def _unpack_return(returned: str) -> str:
    """Returns a tool's text without the JSON object that Letta puts around it; other text unchanged."""
    try:
        wrapping = json.loads(returned)
    except (ValueError, RecursionError):
        return returned
    return text_of(wrapping.get("message")) if isinstance(wrapping, dict) else returned


def join_text_parts(content: Any) -> str:
    """Returns text that is a string or a list of text parts (Letta 0.12.1 streams a list)."""
    return text_of(content) or "".join(text_of(part.get("text")) for part in _objects_of(content))


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _memory_blocks(row: JsonObject) -> Any:
    return _object_of(row.get("memory")).get("blocks") or row.get("blocks")


def _object_of(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _objects_of(value: Any) -> tuple[JsonObject, ...]:
    return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def _unix_time(value: Any) -> int:
    """Returns the Unix time of an ISO time, 0 if invalid. Without a zone, as from Letta on SQLite, it is UTC."""
    try:
        moment = datetime.fromisoformat(text_of(value))
    except ValueError:
        return 0
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
