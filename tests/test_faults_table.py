"""The table of faults counts what was tried and hides no failure."""

from __future__ import annotations

from types import SimpleNamespace

from tests.faults.table import CASES, FAULT, FIGURE, outcomes, table

HEAD = ["| fault | cases | passed |", "|---|---|---|"]


def test_a_test_that_does_not_count_is_one_case() -> None:
    assert table([([(FAULT, "a")], True), ([(FAULT, "a")], False)]) == [*HEAD, "| a | 2 | 1 |"]


def test_a_test_that_counts_and_then_fails_has_tried_one_more() -> None:
    tried = [(FAULT, "a"), (CASES, 2), (CASES, 1), (FIGURE, ("seconds", "7"))]
    assert table([(tried, True), (tried, False)]) == [*HEAD, "| a | 7 | 6 |", "a: seconds 7", "a: seconds 7"]


def test_a_test_without_a_fault_is_not_in_it() -> None:
    assert table([([], True), ([("other", 1)], False)]) == []


def test_what_fails_beside_the_test_is_a_failure_and_counts_nothing_twice() -> None:
    report = SimpleNamespace(user_properties=[(FAULT, "a"), (CASES, 3)])
    assert table(outcomes({"passed": [report], "error": [report]})) == [*HEAD, "| a | 4 | 3 |"]
