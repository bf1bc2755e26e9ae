"""Plugin: tests that talk to servers, processes or a browser are tried once more when they fail.

A busy machine can make such a test fail by itself. A unit test is never tried again, nor is one with the mark
`strict`: a call that is delivered twice, a lost message, a leak or a hole is a fault even if it happens only once.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

OUTSIDE = frozenset({"real", "servers", "browser", "clients"})
NEVER = "strict"


def may_be_tried_again(marks: Iterable[str]) -> bool:
    """The rule, from the marks of a test."""
    names = set(marks)
    return bool(names & OUTSIDE) and NEVER not in names


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if may_be_tried_again(mark.name for mark in item.iter_markers()):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists the tests that failed at first, whatever became of them, with the first line of that failure."""
    failed_first = terminalreporter.stats.get("rerun", [])
    if failed_first:
        terminalreporter.section("needed a second try")
    for report in failed_first:
        terminalreporter.write_line(f"{report.nodeid} ({report.when}): {first_line(report)}")


def first_line(report: pytest.TestReport) -> str:
    """What a failure says of itself."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else report.longreprtext
    return str(next(iter(text.strip().splitlines()), ""))
