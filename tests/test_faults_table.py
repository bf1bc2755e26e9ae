"""The table of faults counts all cases and hides no failure."""

from __future__ import annotations

from types import SimpleNamespace

from tests.faults.table import CASES, FAULT, FIGURE, outcomes, table

HEAD = ["| fault | cases | passed |", "|---|---|---|"]


def test_a_test_without_counts_is_one_case() -> None:
    assert table([([(FAULT, "a")], True), ([(FAULT, "a")], False)]) == [*HEAD, "| a | 2 | 1 |"]


def test_a_failed_test_adds_one_case_to_its_counts() -> None:
    tried = [(FAULT, "a"), (CASES, 2), (CASES, 1), (FIGURE, ("seconds", "7"))]
    assert table([(tried, True), (tried, False)]) == [*HEAD, "| a | 7 | 6 |", "a: seconds 7", "a: seconds 7"]


def test_a_test_without_a_fault_is_not_in_the_table() -> None:
    assert table([([], True), ([("other", 1)], False)]) == []


def test_an_error_in_a_fixture_is_one_failed_case_more() -> None:
    report = SimpleNamespace(user_properties=[(FAULT, "a"), (CASES, 3)])
    assert table(outcomes({"passed": [report], "error": [report]})) == [*HEAD, "| a | 4 | 3 |"]
