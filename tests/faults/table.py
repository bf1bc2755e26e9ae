"""The table at the end of a run: fault, cases, passed, and figures that were measured on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

FAULT, CASES, FIGURE = "fault", "fault-cases", "fault-figure"

Properties = Sequence[tuple[str, Any]]


def fault_of(item: pytest.Item) -> str | None:
    """Returns the fault that the test is about, if there is one."""
    marker = item.get_closest_marker("fault")
    return None if marker is None else str(marker.args[0])


class Cases:
    """Counts the cases that one test tried of its fault. A test that does not count is one case."""

    def __init__(self, item: pytest.Item) -> None:
        assert fault_of(item), f"{item.nodeid} has no marker `fault`"
        self._item = item

    def passed(self, number: int = 1) -> None:
        """Adds cases that passed."""
        self._item.user_properties.append((CASES, number))

    def figure(self, name: str, value: str) -> None:
        """Adds a measured value to the table."""
        self._item.user_properties.append((FIGURE, (name, value)))


def outcomes(stats: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Properties, bool]]:
    """Yields the properties of each test and whether it passed, from pytest's reports by kind."""
    for kind in ("passed", "failed"):
        for report in stats.get(kind, ()):
            yield report.user_properties, kind == "passed"
    for report in stats.get("error", ()):  # before or after the test, whose own report has its counts
        properties: Properties = getattr(
            report, "user_properties", []
        )  # the report of a file that can't be imported has none
        yield [each for each in properties if each[0] == FAULT], False


def table(reports: Iterable[tuple[Properties, bool]]) -> list[str]:
    """Returns Markdown lines from the properties of tests and whether they passed."""
    tried: Counter[str] = Counter()
    passed: Counter[str] = Counter()
    figures: list[str] = []
    for properties, good in reports:
        for fault in _all(properties, FAULT):
            counted = sum(_all(properties, CASES))
            passed[fault] += counted or good
            tried[fault] += (counted or good) + (not good)
            figures += [f"{fault}: {what} {much}" for what, much in _all(properties, FIGURE)]
    if not tried:
        return []
    rows = [f"| {fault} | {tried[fault]} | {passed[fault]} |" for fault in sorted(tried)]
    return ["| fault | cases | passed |", "|---|---|---|", *rows, *figures]


def _all(properties: Properties, wanted: str) -> list[Any]:
    return [value for name, value in properties if name == wanted]
