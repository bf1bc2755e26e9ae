"""Stubs that were made before are given back, and never for another tool."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.converter import make_stub
from bridge.stubs.remembered import LARGEST, MOST, RememberedStubs
from bridge.turn import SchemaForm, Stub, StubKind, ToolSpec

AS_SENT = SchemaForm()


@pytest.fixture
def stubs() -> RememberedStubs:
    return RememberedStubs()


def spec(default: Any = 1, **more: Any) -> ToolSpec:
    schema = {"type": "object", "properties": {"count": {"type": "number", "default": default}}}
    return ToolSpec(**{"name": "read", "description": "Reads.", "parameters": schema} | more)


def made(stubs: RememberedStubs, wanted: ToolSpec, form: SchemaForm = AS_SENT, kind: StubKind = "relay") -> Stub:
    return stubs.stub(wanted, form, kind, "tools[0].function")


def test_the_same_tool_is_made_once(stubs: RememberedStubs) -> None:
    assert made(stubs, spec()) is made(stubs, spec())
    assert made(stubs, spec()) == make_stub(spec(), AS_SENT, kind="relay")


@pytest.mark.parametrize(
    "other",
    [spec(1.0), spec(True), spec("1"), spec(name="write"), spec(description="Writes."), spec(strict=True)],
    ids=["a float", "a boolean", "a string", "name", "description", "strict"],
)
def test_a_tool_that_differs_in_anything_is_another(stubs: RememberedStubs, other: ToolSpec) -> None:
    first = made(stubs, spec())
    assert made(stubs, other) == make_stub(other, AS_SENT, kind="relay")
    assert made(stubs, other) is not first


def test_the_same_tool_for_another_server_or_method_is_another(stubs: RememberedStubs) -> None:
    first = made(stubs, spec())
    squeezed = SchemaForm(as_sent=False)
    assert made(stubs, spec(), squeezed) == make_stub(spec(), squeezed, kind="relay") != first
    assert made(stubs, spec(), kind="placeholder") == make_stub(spec(), AS_SENT) != first


def test_a_refusal_names_the_place_of_the_tool_in_each_request(stubs: RememberedStubs) -> None:
    bad = spec(parameters={"type": "object", "properties": []})
    for where in ("tools[0].function", "tools[7].function"):
        with pytest.raises(InvalidRequest) as refusal:
            stubs.stub(bad, AS_SENT, "placeholder", where)
        assert (refusal.value.param or "").startswith(where)


def test_the_oldest_are_forgotten(stubs: RememberedStubs) -> None:
    first, second = made(stubs, spec(-1)), made(stubs, spec(-2))
    for number in range(MOST - 1):
        made(stubs, spec(number))
        assert made(stubs, spec(-1)) is first
    assert made(stubs, spec(-2)) is not second


def test_very_large_tools_are_not_kept(stubs: RememberedStubs) -> None:
    large = spec(description="x" * LARGEST)
    assert made(stubs, large) is not made(stubs, large)
    assert made(stubs, large) == made(stubs, large)
