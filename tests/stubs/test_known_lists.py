"""A list of tools that was checked before is known by its identity, and taken for no other one."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs import cache, known_lists
from bridge.stubs.cache import MAX_TOOL_SIZE, StubCache
from bridge.stubs.converter import make_stub
from bridge.turn import SchemaForm, ToolSpec
from tests.memory import measured, memory_held

AS_SENT = SchemaForm()
Specs = tuple[ToolSpec, ...]


@pytest.fixture
def stubs() -> StubCache:
    return StubCache()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each call of an expensive function."""
    calls: list[str] = []

    def count(name: str) -> None:
        function = getattr(cache, name)
        monkeypatch.setattr(cache, name, lambda *args, **named: (calls.append(name), function(*args, **named))[1])

    for name in ("_schema_key", "check_schema", "spend_work", "make_stub"):
        count(name)
    return calls


def tools(*defaults: Any, name: str = "tool", **more: Any) -> Specs:
    return tuple(
        ToolSpec(
            f"{name}_{place}",
            "Reads.",
            {"type": "object", "properties": {"count": {"default": default}}, **more},
            place=f"tools[{place}].function.parameters",
        )
        for place, default in enumerate(defaults)
    )


def test_the_same_list_is_checked_once_and_has_the_same_stubs(stubs: StubCache, work: list[str]) -> None:
    sent = tools(1, 2)
    checked = stubs.check_tools(sent)
    made = stubs.stubs(checked, AS_SENT, "relay")
    assert [(spec.place, bool(spec.schema_key)) for spec in checked] == [(spec.place, True) for spec in sent]
    assert made == tuple(make_stub(spec, AS_SENT, kind="relay") for spec in sent)
    work.clear()
    assert stubs.check_tools(sent) is checked
    assert stubs.stubs(checked, AS_SENT, "relay") is made
    assert work == []


def test_an_equal_list_is_checked_by_itself(stubs: StubCache) -> None:
    for default in (1, True, 1.0, "1"):
        sent = tools(default)
        assert repr(stubs.check_tools(sent)) == repr(sent)
        (made,) = stubs.stubs(stubs.check_tools(sent), AS_SENT, "relay")
        assert repr(made.json_schema["parameters"]["properties"]["count"]["default"]) == repr(default)


def test_a_list_with_the_same_tools_has_the_same_stubs(stubs: StubCache, work: list[str]) -> None:
    first, again = tools(1, 2), tools(1, 2)
    checked = stubs.check_tools(first)
    made = stubs.stubs(checked, AS_SENT, "relay")
    assert stubs.check_tools(again) is checked
    work.clear()
    assert stubs.check_tools(again) is stubs.check_tools(checked) is checked
    assert stubs.stubs(stubs.check_tools(again), AS_SENT, "relay") is made
    assert work == []


def test_the_same_tools_at_other_places_are_another_list(stubs: StubCache) -> None:
    for sent in (tools(1, 2), tools(1, 2)[::-1], tuple(replace(spec, place="x.parameters") for spec in tools(1, 2))):
        for _ in range(2):
            checked = stubs.check_tools(replaced := tuple(map(replace, sent)))
            assert checked == replaced
            assert [spec.place for spec in checked] == [spec.place for spec in sent]
            made = stubs.stubs(checked, AS_SENT, "relay")
            assert made == tuple(make_stub(spec, AS_SENT, kind="relay") for spec in sent)


def test_a_tool_at_many_places_is_right_at_each(stubs: StubCache) -> None:
    places = [f"tools[{place}].parameters" for place in range(3 * cache.MAX_PLACES)]
    for place in places * 2:
        (checked,) = stubs.check_tools((replace(*tools(1), place=place),))
        assert checked.place == place


def test_the_stubs_of_each_form_and_kind_are_others(stubs: StubCache) -> None:
    checked = stubs.check_tools(tools(1))
    strict = SchemaForm(as_sent=False)
    for _ in range(2):
        assert stubs.stubs(checked, AS_SENT, "relay") == (make_stub(checked[0], AS_SENT, kind="relay"),)
        assert stubs.stubs(checked, strict, "relay") == (make_stub(checked[0], strict, kind="relay"),)
        assert stubs.stubs(checked, AS_SENT, "placeholder") == (make_stub(checked[0], AS_SENT),)


def test_a_refused_list_is_refused_again_at_the_first_fault(stubs: StubCache) -> None:
    sent = (*tools(1), *tools(1, 2, name="bad", properties=[])[1:], *tools(1, properties=[]))
    for _ in range(2):
        with pytest.raises(InvalidRequest, match=r"tools\[1\]"):
            stubs.check_tools(sent)


def test_unknown_lists_have_stubs_too(stubs: StubCache) -> None:
    assert stubs.check_tools(()) == ()
    assert stubs.stubs((), AS_SENT, "relay") == ()
    assert stubs.stubs([*tools(1)], AS_SENT, "relay") == (make_stub(*tools(1), AS_SENT, kind="relay"),)


def test_a_list_with_a_very_large_tool_is_not_remembered(stubs: StubCache, work: list[str]) -> None:
    sent = tools("x" * MAX_TOOL_SIZE)
    assert stubs.check_tools(sent) == stubs.check_tools(sent)
    assert work.count("check_schema") == 2


def test_all_lists_together_take_little_memory(stubs: StubCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_SIZE", 500_000)
    monkeypatch.setattr(known_lists, "MAX_SIZE", 500_000)
    schema = json.dumps({"a": {"default": [{}] * 100}, "b": {"default": "x" * 500}})

    def remember() -> int:
        for number in range(60):
            sent = tools(*range(10), name=f"list{number}", properties=json.loads(schema))
            made = stubs.stubs(stubs.check_tools(sent), SchemaForm(as_sent=False), "relay")
        del sent, made
        return memory_held()

    assert 300_000 < measured(remember) < 1_500_000


def test_the_lists_used_longest_ago_are_forgotten(stubs: StubCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_lists, "MAX_LISTS", 2)
    lists = [tools(number) for number in range(3)]
    first = [stubs.check_tools(sent) for sent in lists]
    found = [stubs.check_tools(sent) is checked for sent, checked in zip(reversed(lists), reversed(first), strict=True)]
    assert found == [True, True, False]


def test_threads_get_the_stubs_of_their_own_lists(stubs: StubCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_lists, "MAX_LISTS", 3)
    kept = [tools(number, number + 1) for number in range(5)]

    def ask(number: int) -> list[Any]:
        sent = kept[number % 5] if number % 2 else tools(number % 5, number % 5 + 1)
        made = stubs.stubs(stubs.check_tools(sent), AS_SENT, "relay")
        return [stub.json_schema["parameters"]["properties"]["count"]["default"] for stub in made]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(400))) == [[number % 5, number % 5 + 1] for number in range(400)]


def test_a_list_that_two_requests_brought_at_once_is_forgotten_and_remembered_again() -> None:
    """Both had checked it before either was remembered, so there are two entries for one array of a client."""
    known, sent = known_lists.KnownLists(), tools(1)
    first, second = tools(1), tools(1)
    for checked in (first, second):
        known.add(sent, checked, 1)
    for checked in (first, second, first):
        others = [(tools(number, name="other"), tools(number, name="other")) for number in range(known_lists.MAX_LISTS)]
        for other in others:
            known.add(*other, 1)
        assert known.find(sent) is None
        assert known.add(sent, checked, 1).checked is checked
        found = known.find(sent)
        assert found is not None
        assert found.checked is checked


def test_a_tool_that_two_requests_bring_at_once_is_one_object(
    stubs: StubCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = cache.check_schema
    others: list[Specs] = []

    def check_twice(*args: Any) -> None:
        """Has another request check the same tool at the same time."""
        check(*args)
        monkeypatch.setattr(cache, "check_schema", check)
        others.append(stubs.check_tools(tools(1)))

    monkeypatch.setattr(cache, "check_schema", check_twice)
    checked = stubs.check_tools(tools(1))
    assert checked[0] is others[0][0]
