from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.catalogue.choice import FIRST, MOST_DIRECT, choose_direct
from bridge.turn import ToolSpec

MANY = [ToolSpec(f"tool_{number}") for number in range(200)]


def chosen(named: str = "", always: set[str] | None = None, used: Iterator[str] | list[str] = ()) -> list[str]:  # type: ignore[assignment]
    return [spec.name for spec in choose_direct(MANY, named, always or set(), used)]


def test_the_first_tools_of_the_request_are_chosen() -> None:
    assert chosen() == [f"tool_{number}" for number in range(FIRST)]


def test_tools_are_in_the_order_of_the_request() -> None:
    assert chosen("tool_150", {"tool_120"}, ["tool_180", "tool_100"])[FIRST:] == [
        "tool_100",
        "tool_120",
        "tool_150",
        "tool_180",
    ]


def test_a_tool_is_chosen_once_and_unknown_names_are_ignored() -> None:
    assert chosen("tool_1", {"tool_2", "nothing"}, ["tool_3", "tool_3", "gone"]) == chosen()


def test_the_newest_of_the_used_tools_have_room() -> None:
    used = [f"tool_{number}" for number in range(199, 100, -1)]
    assert set(chosen(used=used)) == {*chosen(), *used[: MOST_DIRECT - FIRST]}


def test_no_more_of_the_used_tools_is_read_than_there_is_room_for() -> None:
    def used() -> Iterator[str]:
        yield from (spec.name for spec in MANY)
        pytest.fail("nothing more is needed")

    assert len(chosen(used=used())) == MOST_DIRECT


def test_tools_that_are_always_there_come_before_the_first_ones() -> None:
    always = {f"tool_{number}" for number in range(100, 140)}
    found = chosen("tool_199", always)
    assert len(found) == MOST_DIRECT
    assert set(found) <= {*always, "tool_199"}
    assert "tool_199" in found
