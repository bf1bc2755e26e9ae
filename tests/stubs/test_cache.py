"""Tools of earlier requests are recognised, and no tool is taken for another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs import cache
from bridge.stubs.cache import MAX_TOOL_SIZE, MAX_TOOLS, StubCache
from bridge.stubs.checks import SchemaLimits
from bridge.stubs.converter import make_stub
from bridge.stubs.work import Work
from bridge.turn import SchemaForm, Stub, StubKind, ToolSpec
from tests.memory import measured, memory_held

AS_SENT = SchemaForm()
PLACE = "tools[0].function"
BAD_SCHEMA = {"type": "object", "properties": []}


@pytest.fixture
def stubs() -> StubCache:
    return StubCache()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the expensive functions that were called."""
    calls: list[str] = []

    def counted(name: str) -> Callable[..., Any]:
        function = getattr(cache, name)
        return lambda *args, **named: (calls.append(name), function(*args, **named))[1]

    for name in ("_schema_key", "check_schema", "make_stub"):
        monkeypatch.setattr(cache, name, counted(name))
    return calls


def spec(default: Any = 1, **more: Any) -> ToolSpec:
    schema = {"type": "object", "properties": {"count": {"type": "number", "default": default}}}
    return ToolSpec(**{"name": "read", "description": "Reads.", "parameters": schema} | more)


def made(stubs: StubCache, wanted: ToolSpec, form: SchemaForm = AS_SENT, kind: StubKind = "relay") -> Stub:
    return stubs.stub(wanted, form, kind, PLACE)


def checked(stubs: StubCache, wanted: ToolSpec) -> ToolSpec:
    return stubs.check_tool(wanted, f"{PLACE}.parameters", Work())


def test_a_stub_is_made_once(stubs: StubCache) -> None:
    assert made(stubs, spec()) is made(stubs, spec())
    assert made(stubs, spec()) == make_stub(spec(), AS_SENT, kind="relay")


@pytest.mark.parametrize(
    "other",
    [spec(1.0), spec(True), spec("1"), spec(name="write"), spec(description="Writes."), spec(strict=True)],
    ids=["a float", "a boolean", "a string", "name", "description", "strict"],
)
def test_a_tool_that_differs_in_anything_is_another_tool(stubs: StubCache, other: ToolSpec) -> None:
    first = made(stubs, checked(stubs, spec()))
    assert repr(checked(stubs, other)) == repr(other)
    assert made(stubs, checked(stubs, other)) == make_stub(other, AS_SENT, kind="relay")
    assert made(stubs, other) is not first


def test_each_form_and_kind_has_a_stub_of_its_own(stubs: StubCache) -> None:
    first = made(stubs, spec())
    strict = SchemaForm(as_sent=False)
    assert made(stubs, spec(), strict) == make_stub(spec(), strict, kind="relay") != first
    assert made(stubs, spec(), kind="placeholder") == make_stub(spec(), AS_SENT) != first


def test_a_new_tool_is_checked_and_identified_once(stubs: StubCache, work: list[str]) -> None:
    found = checked(stubs, spec())
    assert found == spec()
    assert found.schema_key
    assert work == ["_schema_key", "check_schema"]
    made(stubs, found)
    assert work == ["_schema_key", "check_schema", "make_stub"]


@pytest.mark.parametrize("known", [spec(), spec(parameters=None)], ids=["with a schema", "without a schema"])
def test_a_known_tool_is_not_checked_again(stubs: StubCache, work: list[str], known: ToolSpec) -> None:
    first = made(stubs, checked(stubs, known))
    work.clear()
    assert made(stubs, checked(stubs, replace(known))) is first
    assert work == ["_schema_key"]


def test_each_refusal_names_the_place_in_its_own_request(stubs: StubCache) -> None:
    bad = spec(parameters=BAD_SCHEMA)
    for where in ("tools[0].function", "tools[7].function"):
        with pytest.raises(InvalidRequest) as by_check:
            stubs.check_tool(bad, f"{where}.parameters", Work())
        with pytest.raises(InvalidRequest) as by_stub:
            stubs.stub(bad, AS_SENT, "placeholder", where)
        assert by_check.value.param == by_stub.value.param == f"{where}.parameters.properties"
        assert by_check.value.message == by_stub.value.message
        assert by_check.value.message.startswith(f"The tool {bad.name!r} is refused: `{where}")


def test_a_tool_is_checked_against_the_limits() -> None:
    with pytest.raises(InvalidRequest, match="50 are allowed"):
        checked(StubCache(SchemaLimits(size=50)), spec())


def test_a_known_tool_counts_as_much_work_as_a_new_one(stubs: StubCache) -> None:
    spent = []
    for _ in range(2):
        work = Work()
        stubs.check_tool(spec(), PLACE, work)
        spent.append(work.spent)
    assert spent[0] == spent[1] > 0


def test_the_tools_used_longest_ago_are_forgotten(stubs: StubCache) -> None:
    first, second = made(stubs, spec(-1)), made(stubs, spec(-2))
    for number in range(MAX_TOOLS - 1):
        made(stubs, spec(number))
        assert made(stubs, spec(-1)) is first
    assert made(stubs, spec(-2)) is not second


def test_very_large_tools_are_not_remembered(stubs: StubCache, work: list[str]) -> None:
    large = spec(description="x" * MAX_TOOL_SIZE)
    one, other = (made(stubs, checked(stubs, large)) for _ in range(2))
    assert one == other
    assert one is not other
    assert work == ["_schema_key", "check_schema", "make_stub"] * 2


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"default": [{}] * 1_000}},
        {f"a{number}": {"anyOf": [{"$ref": "#/$defs/B"}, {"type": "integer"}]} for number in range(10)},
    ],
    ids=["many small values", "a definition that is quoted often"],
)
def test_all_tools_and_stubs_together_take_little_memory(
    stubs: StubCache, properties: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_SIZE", 2_000_000, raising=False)
    definitions = {"B": {"type": "string", "description": "x" * 7_000}}
    sent = json.dumps({"type": "object", "properties": properties, "$defs": definitions})

    def remember() -> int:
        for number in range(60):
            tool = spec(name=f"tool{number}", parameters=json.loads(sent))
            made(stubs, checked(stubs, tool), SchemaForm(as_sent=False))
        del tool
        return memory_held()

    assert 300_000 < measured(remember) < 3_000_000


def test_a_usual_number_of_usual_tools_is_remembered(stubs: StubCache) -> None:
    properties = {f"p{number}": {"type": "string", "description": "A text of some words."} for number in range(12)}
    tools = [spec(number, name=f"tool{number}", parameters={"properties": properties}) for number in range(1_024)]
    first = [made(stubs, checked(stubs, tool)) for tool in tools]
    assert all(made(stubs, tool) is stub for tool, stub in zip(tools, first, strict=True))


def test_threads_get_the_stubs_of_their_own_tools(stubs: StubCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_TOOLS", 3)

    def ask(number: int) -> Any:
        return made(stubs, checked(stubs, spec(number % 7))).json_schema["parameters"]["properties"]["count"]["default"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(400))) == [number % 7 for number in range(400)]


def test_the_tools_of_a_large_request_are_checked_quickly_and_remembered(
    stubs: StubCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tuple(spec(name=f"tool{number}", parameters={"type": "object"}) for number in range(600))
    read: list[str] = []
    check = cache.check_schema
    monkeypatch.setattr(cache, "check_schema", lambda *given: (read.append(given[1]), check(*given))[1])
    first = stubs.check_tools(tools, spends_work=False)
    assert read == []
    assert stubs.check_tools(tools, spends_work=False) is first
    with pytest.raises(InvalidRequest, match="tool600"):
        stubs.check_tools((*tools, spec(name="tool600", parameters={"properties": []})), spends_work=False)
    assert len(read) == 1
