from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.letta.gateway import Tool
from bridge.sync.ownership import (
    OWNER,
    client_name_of,
    creation_time,
    differs_from_stub,
    digest_of,
    has_sweep_tag,
    idle_since,
    is_leaving,
    is_ours,
    is_tool_of_stub,
    stub_tags,
    tags_when_idle,
    tags_when_leaving,
    tags_without_sweep,
)
from tests.toolsets import stub, tool_of

STUB = stub("fs.read-file")
PUT = tool_of(STUB)


def tagged(*tags: str) -> Tool:
    return replace(PUT, tags=tags)


def test_a_stub_on_the_server_shows_all_that_a_bridge_needs_to_know() -> None:
    assert is_ours(PUT)
    assert digest_of(PUT) == STUB.digest
    assert client_name_of(PUT) == "fs.read-file"
    assert is_tool_of_stub(PUT, STUB)
    assert not differs_from_stub(PUT, STUB)
    assert not has_sweep_tag(PUT)


@pytest.mark.parametrize("type", ["external_mcp", "letta_core", "letta_builtin", ""])
def test_only_a_custom_tool_can_be_ours(type: str) -> None:
    assert not is_ours(replace(PUT, type=type))


@pytest.mark.parametrize("tags", [(), ("mine",), (OWNER.upper(),), (f"{OWNER}s",), (f"{OWNER}:digest={STUB.digest}",)])
def test_a_tool_without_our_own_tag_is_not_ours(tags: tuple[str, ...]) -> None:
    assert not is_ours(tagged(*tags))
    assert not is_tool_of_stub(tagged(*tags), STUB)


def test_a_tool_with_only_our_tag_is_ours_and_represents_no_stub() -> None:
    assert is_ours(tagged(OWNER))
    assert (digest_of(tagged(OWNER)), client_name_of(tagged(OWNER))) == ("", PUT.name)
    assert not is_tool_of_stub(tagged(OWNER), STUB)
    assert not is_ours(replace(PUT, source="def read_file():\n    return 1\n"))


@pytest.mark.parametrize(
    "changed",
    [
        replace(PUT, json_schema={**PUT.json_schema, "description": "Reads another file."}),
        replace(PUT, source=PUT.source + "\n"),
        replace(PUT, tags=tuple(stub_tags(stub("fs.read-file", "Other.")))),
    ],
)
def test_a_stub_that_somebody_changed_has_drifted(changed: Tool) -> None:
    assert differs_from_stub(changed, STUB)


def test_a_stub_that_somebody_changed_is_still_the_same_stub() -> None:
    assert is_tool_of_stub(replace(PUT, json_schema={}, source=""), STUB)


def test_a_stub_of_another_version_of_the_bridge_is_the_same_if_its_schema_is() -> None:
    older = replace(STUB, digest="0" * 64)
    assert is_tool_of_stub(replace(PUT, tags=tuple(stub_tags(older))), STUB)
    assert not is_tool_of_stub(replace(PUT, tags=tuple(stub_tags(older)), json_schema={}), STUB)


def test_a_stub_that_returns_something_else_is_another_one() -> None:
    relay = stub("fs.read-file", kind="relay")
    assert relay.json_schema == STUB.json_schema
    assert not is_tool_of_stub(PUT, relay)


def test_marks_come_and_go_and_leave_the_other_tags_alone() -> None:
    idle = replace(PUT, tags=tuple(tags_when_idle(PUT, 1_800_000_000)))
    assert idle_since(idle) == 1_800_000_000
    assert has_sweep_tag(idle)
    assert not is_leaving(idle)
    leaving = replace(PUT, tags=tuple(tags_when_leaving(idle)))
    assert is_leaving(leaving)
    assert idle_since(leaving) == 1_800_000_000
    assert not is_tool_of_stub(leaving, STUB)
    assert is_tool_of_stub(idle, STUB)
    assert tags_without_sweep(leaving) == list(PUT.tags)
    assert tags_when_idle(leaving, 5) == [*PUT.tags, f"{OWNER}:idle-since=5"]
    assert tags_when_leaving(leaving) == list(leaving.tags)


@pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", "²", "18000000000000", "9" * 5000])
def test_a_mark_with_an_invalid_time_is_ignored(value: str) -> None:
    assert idle_since(tagged(OWNER, f"{OWNER}:idle-since={value}")) is None
    assert creation_time(tagged(OWNER, f"{OWNER}:made={value}")) == 0
