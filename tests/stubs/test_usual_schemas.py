from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import BridgeError
from bridge.stubs.checks import SchemaLimits, check_schema
from bridge.stubs.converter import USUAL_LIMITS
from bridge.stubs.usual_schemas import is_usual

CASES = Path(__file__).parent.parent / "cases"
WORDS = st.sampled_from(["string", "object", "array", "a", "b", "", "x\x00", "\ud800", "😀"])
COMMON = ["type", "title", "description", "default", "enum", "format", "properties", "required", "items", "minimum"]
RARE = [
    "additionalProperties",
    "maxItems",
    "minLength",
    "$schema",
    "anyOf",
    "$ref",
    "nullable",
    "pattern",
    "const",
    "a",
]
KEYS = st.sampled_from([*COMMON, *RARE, ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


def is_accepted(parameters: Any) -> bool:
    try:
        check_schema(parameters, "parameters", USUAL_LIMITS)
    except BridgeError:
        return False
    return True


@given(st.dictionaries(KEYS, VALUES, max_size=5) | VALUES)
def test_whatever_is_usual_is_accepted_by_the_whole_check(parameters: Any) -> None:
    if is_usual(parameters, USUAL_LIMITS):
        assert is_accepted(parameters), parameters


def schemas_in(folder: str) -> Iterator[Any]:
    for file in sorted((CASES / folder).rglob("*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        yield found.get("parameters", found) if isinstance(found, dict) else found


@pytest.mark.parametrize("folder", ["tools", "tools_bad"])
def test_schemas_of_clients_that_are_usual_are_accepted(folder: str) -> None:
    for parameters in schemas_in(folder):
        if is_usual(parameters, USUAL_LIMITS):
            assert is_accepted(parameters), parameters


def test_the_tools_of_usual_servers_are_usual() -> None:
    rows = (CASES / "tool_search" / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(is_usual(json.loads(row)["parameters"], USUAL_LIMITS) for row in rows)
    assert is_usual(None, USUAL_LIMITS)
    assert is_usual({}, USUAL_LIMITS)


@pytest.mark.parametrize(
    "parameters",
    [
        [],
        "text",
        {"type": "strnig"},
        {"properties": []},
        {"properties": {"": {}}},
        {"properties": {"a": None}},
        {"required": ["a", "a"]},
        {"enum": []},
        {"minLength": -1},
        {"minimum": float("nan")},
        {"description": "x\x00"},
        {"description": "x" * 30_000},
        {"anyOf": [{}]},
    ],
    ids=str,
)
def test_what_may_be_invalid_is_left_to_the_whole_check(parameters: Any) -> None:
    assert not is_usual(parameters, USUAL_LIMITS)


def test_deep_schemas_are_left_to_the_whole_check() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"items": deep}
    assert not is_usual(deep, USUAL_LIMITS)


def test_nothing_is_usual_where_less_is_allowed() -> None:
    assert not is_usual({}, SchemaLimits(depth=10))
    assert not is_usual({}, SchemaLimits(size=1_000))
