"""The quick way to read an agent gives what the slow one gives, and the same tools as the time before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import LettaError
from bridge.letta import agent_reader
from bridge.letta.agent_reader import AgentReader
from bridge.letta.rows import agent_from_row

CASES = sorted(Path("tests/cases/letta_api").glob("*.json"))
TOOL = {
    "id": "tool-1",
    "name": "look",
    "tags": ["a"],
    "json_schema": {"name": "look"},
    "source_code": "def look(): ...",
}
AGENT: dict[str, Any] = {
    "id": "agent-1",
    "name": "Ada",
    "agent_type": "letta_v1_agent",
    "tools": [TOOL],
    "tool_rules": [{"type": "exit_loop", "tool_name": "look"}],
    "message_ids": ["message-1", "message-2"],
    "memory": {"blocks": [{"id": "block-1", "label": "human", "value": "Bo", "metadata": {"owner": "x"}}]},
    "llm_config": {"model": "gpt", "model_endpoint_type": "openai", "parallel_tool_calls": True},
    "metadata": {"mine": [1]},
    "enable_sleeptime": True,
    "system": "not read",
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def agents_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "agent_type" in value and "id" in value:
            yield value
        for inner in value.values():
            yield from agents_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from agents_in(inner)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_agents_of_real_servers_are_read_as_by_the_slow_way(path: Path) -> None:
    found = list(agents_in(json.loads(path.read_text(encoding="utf-8"))))
    assert found
    reader = AgentReader()
    for row in found:
        for _ in range(2):
            assert reader.read_agent(json.dumps(row).encode()) == agent_from_row(row)


@given(st.dictionaries(st.sampled_from([*AGENT]), VALUES, max_size=4), st.sets(st.sampled_from([*AGENT]), max_size=3))
def test_fields_of_any_form_are_read_as_by_the_slow_way(changes: dict[str, Any], missing: set[str]) -> None:
    row = {name: value for name, value in {**AGENT, **changes}.items() if name not in missing}
    assert outcome(row) == outcome(row, quick=True)


def outcome(row: dict[str, Any], *, quick: bool = False) -> object:
    try:
        return AgentReader().read_agent(json.dumps(row).encode()) if quick else agent_from_row(row)
    except TypeError as fault:  # a list is expected, and an object of another kind is there
        return type(fault)


@pytest.mark.parametrize("text", [b"[]", b'"x"', b"7"])
def test_what_is_no_object_is_no_agent(text: bytes) -> None:
    with pytest.raises(LettaError):
        AgentReader().read_agent(text)


@pytest.mark.parametrize("text", [b"", b"<html>", b"{", b'{"id": '])
def test_what_is_no_json_is_refused_as_json_is(text: bytes) -> None:
    with pytest.raises(ValueError, match="line 1") as caught:
        AgentReader().read_agent(text)
    assert type(caught.value) is json.JSONDecodeError


def test_a_tool_that_letta_sends_again_is_the_same_object() -> None:
    reader = AgentReader()
    first = reader.read_agent(json.dumps(AGENT).encode())
    second = reader.read_agent(json.dumps({**AGENT, "message_ids": ["message-9"]}).encode())
    changed = reader.read_agent(json.dumps({**AGENT, "tools": [{**TOOL, "tags": []}]}).encode())
    assert second.message_ids == ("message-9",)
    assert first.tools[0] is second.tools[0]
    assert changed.tools[0].tags == ()


def test_tools_take_a_limited_part_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_reader, "MOST_REMEMBERED", 1_000)
    reader = AgentReader()
    for number in range(100):
        tool = {**TOOL, "name": f"look_{number}"}
        assert reader.read_agent(json.dumps({**AGENT, "tools": [tool]}).encode()).tools[0].name == f"look_{number}"
    assert sum(map(len, reader._tools._values)) <= 1_000
