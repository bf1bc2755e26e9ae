"""The table at the end of a run: fault, cases, passed, and figures that were measured on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

CASES, FIGURE = "fault-cases", "fault-figure"


class Cases:
    """What one test tried of the fault that its marker names."""

    def __init__(self, item: pytest.Item) -> None:
        marker = item.get_closest_marker("fault")
        assert marker is not None, f"{item.nodeid} has no marker `fault`"
        self._fault = str(marker.args[0])
        self._item = item

    def passed(self, number: int = 1) -> None:
        """So many cases more were survived."""
        self._item.user_properties.append((CASES, (self._fault, number)))

    def figure(self, name: str, value: str) -> None:
        """Something that was measured."""
        self._item.user_properties.append((FIGURE, (self._fault, name, value)))


def table(reports: Iterable[tuple[Sequence[tuple[str, Any]], bool]]) -> list[str]:
    """Markdown lines from (properties of a test, whether it passed)."""
    tried: dict[str, int] = {}
    passed: dict[str, int] = {}
    figures: list[str] = []
    for properties, good in reports:
        counted = [value for name, value in properties if name == CASES]
        for fault, number in counted:
            tried[fault] = tried.get(fault, 0) + number
            passed[fault] = passed.get(fault, 0) + number
        if counted and not good:
            tried[counted[0][0]] += 1
        figures += [f"{fault}: {what} {much}" for name, (fault, what, much) in _figures(properties)]
    if not tried:
        return []
    rows = [f"| {fault} | {tried[fault]} | {passed[fault]} |" for fault in sorted(tried)]
    return ["| fault | cases | passed |", "|---|---|---|", *rows, *figures]


def _figures(properties: Sequence[tuple[str, Any]]) -> list[tuple[str, tuple[str, str, str]]]:
    return [(name, (value[0], value[1], value[2])) for name, value in properties if name == FIGURE]
