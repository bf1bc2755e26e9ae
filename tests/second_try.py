"""Plugin: tests that talk to servers, processes or a browser are tried once more when they fail.

A busy machine can make such a test fail by itself. A unit test is never tried again. One with the mark `strict` is
only tried again if a client was told 504, that Letta answered too late: a call that is delivered twice, a lost message,
a leak or a hole is a fault even if it happens only once.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

OUTSIDE = frozenset({"real", "servers", "browser", "clients"})
STRICT = "strict"
ANYTHING = ""
TOO_LATE = r"\b504\b"


def failures_to_try_again(marks: Iterable[str]) -> str | None:
    """Returns a pattern of the failures after which a test with these marks is tried again; None if after none."""
    names = set(marks)
    if not names & OUTSIDE:
        return None
    return TOO_LATE if STRICT in names else ANYTHING


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        failures = failures_to_try_again(mark.name for mark in item.iter_markers())
        if failures is not None:
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=[failures]))


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
