from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from bridge.letta import rows
from bridge.letta.gateway import Agent, AgentSummary, Block, Tool

BLOCK = {"id": "block-1", "label": "human", "value": "x", "limit": 20000, "read_only": False, "metadata": {"a": 1}}
TOOL = {
    "id": "tool-1",
    "name": "read",
    "tool_type": "custom",
    "tags": ["one", "two"],
    "json_schema": {"name": "read", "parameters": {}},
    "source_code": "…",
}
AGENT = {
    "id": "agent-1",
    "name": "Ada",
    "agent_type": "memgpt_v2_agent",
    "tools": [TOOL],
    "tool_rules": [{"type": "exit_loop", "tool_name": "send_message"}],
    "message_ids": ["message-1", "message-2"],
    "memory": {"blocks": [BLOCK], "file_blocks": []},
    "system": "…",
}


def test_an_agent_is_read_with_its_tools_rules_messages_and_blocks() -> None:
    assert rows.agent_from_row(AGENT) == Agent(
        id="agent-1",
        name="Ada",
        type="memgpt_v2_agent",
        tools=(Tool("tool-1", "read", "custom", ("one", "two"), {"name": "read", "parameters": {}}, "…"),),
        rules=({"type": "exit_loop", "tool_name": "send_message"},),
        message_ids=("message-1", "message-2"),
        blocks=(Block("block-1", "human", "x", {"a": 1}),),
    )


@pytest.mark.parametrize(("sent", "sleeptime"), [(True, True), (False, False), (None, False)])
def test_sleeptime_is_read_from_the_agent(sent: bool | None, sleeptime: bool) -> None:
    assert rows.agent_from_row({**AGENT, "enable_sleeptime": sent}).sleeptime is sleeptime


def test_blocks_are_read_also_where_later_servers_put_them() -> None:
    assert rows.agent_from_row({**AGENT, "memory": {}, "blocks": [BLOCK]}).blocks == rows.agent_from_row(AGENT).blocks


@pytest.mark.parametrize("field", ["tools", "tool_rules", "message_ids", "memory"])
@pytest.mark.parametrize("empty", [None, [], {}])
def test_a_missing_field_counts_as_empty(field: str, empty: Any) -> None:
    found = rows.agent_from_row({**AGENT, field: empty})
    parts = {"tools": found.tools, "tool_rules": found.rules, "message_ids": found.message_ids, "memory": found.blocks}
    assert [name for name, part in parts.items() if part == ()] == [field]


def test_empty_rows_become_values_with_defaults() -> None:
    assert rows.agent_from_row({}) == Agent("", "", "")
    assert rows.tool_from_row({}) == Tool("", "")
    assert rows.block_from_row({}) == Block("", "", "")


def test_a_tool_without_a_type_counts_as_custom() -> None:
    assert rows.tool_from_row({**TOOL, "tool_type": None}).type == "custom"
    assert rows.tool_from_row({**TOOL, "tool_type": "letta_core"}).type == "letta_core"


def test_a_block_without_metadata_has_no_marks() -> None:
    assert rows.block_from_row({**BLOCK, "metadata": None}).metadata == {}


@pytest.mark.parametrize("returned", ["plain", "[1]", "1", "[" * 100_000], ids=["text", "list", "number", "too deep"])
def test_a_return_that_letta_did_not_pack_stays_as_it_is(returned: str) -> None:
    row = {"message_type": "tool_return_message", "tool_return": returned}
    assert rows.message_from_row(row, packed=True).text == returned


@pytest.fixture
def local_time_is_not_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("local_time_is_not_utc")
@pytest.mark.parametrize(
    ("created", "seconds"),
    [
        ("2026-11-18T11:42:41.746059Z", 1795002161),
        ("2026-11-18T11:42:41+00:00", 1795002161),
        ("2026-11-18T12:42:41+01:00", 1795002161),
        ("2026-11-18T11:42:41", 1795002161),
        ("", 0),
        (None, 0),
        ("yesterday", 0),
    ],
)
def test_a_time_without_a_zone_is_utc(created: str | None, seconds: int) -> None:
    """Servers on SQLite leave the time zone out."""
    summary = rows.agent_summary_from_row({"id": "agent-1", "name": "Ada", "created_at": created})
    assert summary == AgentSummary("agent-1", "Ada", seconds)
