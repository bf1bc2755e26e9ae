"""Tools of earlier requests are recognised by their list, and no list is taken for another one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bridge.dialects.openai import known_tools as module
from bridge.dialects.openai.known_tools import KnownTools
from bridge.dialects.openai.tools import parse_tools
from bridge.errors import InvalidRequest
from bridge.turn import ToolSpec
from tests.memory import measured, memory_held


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


@pytest.fixture
def known() -> KnownTools:
    return KnownTools()


def parse(known: KnownTools, tools: list[Any], most: int = 3) -> tuple[ToolSpec, ...]:
    return parse_tools({"tools": tools}, most, known)


def test_the_same_list_is_read_once(known: KnownTools) -> None:
    tools = [tool("a"), tool("b")]
    assert parse(known, tools) is parse(known, tools)


def test_an_equal_list_is_read_by_itself(known: KnownTools) -> None:
    first = parse(known, [tool("a", default=1)])
    other = parse(known, [tool("a", default=True)])
    assert [spec.parameters for spec in (*first, *other)] == [{"default": 1}, {"default": True}]


def test_of_equal_lists_the_newest_is_remembered(known: KnownTools) -> None:
    old, new = [tool("a")], [tool("a")]
    first = parse(known, old)
    specs = parse(known, new)
    assert parse(known, new) is specs
    assert parse(known, old) is not first
    assert known.digest(old) == known.digest(new)


def test_a_refused_list_is_refused_again(known: KnownTools) -> None:
    tools = [tool("a"), tool("")]
    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"tools\[1\]\.function\.name"):
            parse(known, tools)


def test_a_known_list_is_still_too_long_elsewhere(known: KnownTools) -> None:
    tools = [tool("a"), tool("b")]
    parse(known, tools)
    with pytest.raises(InvalidRequest, match="the limit is 1"):
        parse(known, tools, 1)


def test_the_digest_is_of_the_json_known_or_not(known: KnownTools) -> None:
    tools = [tool("a", default=1, type="object")]
    unknown = known.digest(tools)
    parse(known, tools)
    assert known.digest(tools) == unknown == known.digest([tool("a", type="object", default=1)])
    others = [tool("a", default=True, type="object")], [tool("a", default=1.0, type="object")], [*tools, tool("b")]
    assert len({unknown, *map(known.digest, others)}) == 4


@pytest.mark.parametrize("schema", [{"d": "x" * 20_000}, {"d": [{}] * 1_000}], ids=["text", "empty objects"])
def test_all_lists_together_take_little_memory(known: KnownTools, schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1_000_000)
    sent = json.dumps([tool("a", **schema)])

    def remember() -> int:
        for number in range(200):
            parse(known, [*json.loads(sent), tool(f"b{number}")])
        return memory_held()

    assert 300_000 < measured(remember) < 1_200_000


def test_the_lists_used_longest_ago_are_forgotten(known: KnownTools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTS", 2)
    lists = [[tool(name)] for name in "abc"]
    first = [parse(known, tools) for tools in lists]
    assert [parse(known, tools) is specs for tools, specs in zip(reversed(lists), reversed(first), strict=True)] == [
        True,
        True,
        False,
    ]


def test_threads_get_the_tools_of_their_own_lists(known: KnownTools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTS", 3)
    kept = [[tool(f"kept{number}")] for number in range(5)]

    def ask(number: int) -> bool:
        tools = kept[number % 5] if number % 2 else [tool(f"new{number}")]
        return [spec.name for spec in parse(known, tools)] == [item["function"]["name"] for item in tools]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))
