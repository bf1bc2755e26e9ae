"""Reads Letta's JSON of an agent, which every turn does, without the parts that the bridge has no use for.

An agent's JSON is mostly tools, and they are mostly those of the turn before. So each tool is remembered by its text,
and is the same object as long as Letta sends the same text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bridge.letta import rows
from bridge.letta.gateway import Agent, Tool
from bridge.letta.trouble import make_error
from bridge.quick_json import RememberedValues, read_json

# How many bytes of JSON are remembered as tools. A stub has about two thousand.
MOST_REMEMBERED = 8_000_000


class _Memory(msgspec.Struct):
    blocks: list[dict[str, Any]] | None = None


class _AgentRow(msgspec.Struct):
    """The fields of an agent that are read, in their usual forms. In another form, rows.py reads the agent."""

    id: str
    name: str
    agent_type: str
    tools: list[msgspec.Raw] = []
    tool_rules: list[dict[str, Any]] | None = None
    message_ids: list[str] | None = None
    memory: _Memory | None = None
    blocks: list[dict[str, Any]] | None = None
    llm_config: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    enable_sleeptime: bool | None = None
    message_buffer_autoclear: bool | None = None


_DECODER = msgspec.json.Decoder(_AgentRow)


class AgentReader:
    """Reads agents of one server, for many threads."""

    def __init__(self) -> None:
        self._tools: RememberedValues[Tool] = RememberedValues(MOST_REMEMBERED)

    def read_agent(self, content: bytes) -> Agent:
        """Returns what rows.agent_from_row() makes of the JSON."""
        try:
            row = _DECODER.decode(content)
            tools = [self._read_tool(text) for text in map(bytes, row.tools) if text.startswith(b"{")]
        except (msgspec.DecodeError, UnicodeError):
            value = read_json(content)
            if not isinstance(value, dict):
                raise make_error("not Letta") from None
            return rows.agent_from_row(value)
        return rows.make_agent(
            id=row.id,
            name=row.name,
            type=row.agent_type,
            tools=tuple(tools),
            rules=row.tool_rules or (),
            message_ids=row.message_ids or (),
            blocks=(row.memory.blocks if row.memory else None) or row.blocks or (),
            config=row.llm_config or {},
            metadata=row.metadata or {},
            sleeptime=row.enable_sleeptime is True,
            clears_context=row.message_buffer_autoclear is True,
        )

    def _read_tool(self, text: bytes) -> Tool:
        known = self._tools.get(text)
        return known or self._tools.add(text, rows.tool_from_row(read_json(text)))
