"""Plugin: with TEST_TESTBED=changed, the testbed's own tests are left out while the testbed is as it was tested.

They take minutes and depend on nothing but the testbed. When they have all passed in a whole run, a file in the cache
keeps the digest of the testbed and of these tests. Later runs compare it, and say so when they leave the tests out.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from xdist.workermanage import WorkerController

from testbed.cache import Cache

TESTS = ("tests/testbed", "tests/real/test_testbed.py")
DIGESTED = ("testbed", *TESTS, "requirements.txt", "requirements-dev.txt")
LINE = f"left out, as the testbed is unchanged since they passed: {' '.join(TESTS)} (name them to run them)"

LEFT_OUT = pytest.StashKey[bool]()


def digest(root: Path) -> str:
    """Changes with the testbed, its tests, the packages and the Python."""
    found = hashlib.sha256(sys.version.encode())
    for file in sorted(_files(root)):
        found.update(f"\n{file.relative_to(root)}\n".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for place in (root / name for name in DIGESTED):
        yield from place.rglob("*.py") if place.is_dir() else [place] if place.exists() else []


def stamp() -> Path:
    """The file that keeps the digest of what passed last."""
    return Cache.default().root / "testbed-tested"


def pytest_configure(config: pytest.Config) -> None:
    """The workers of a run do what its first process decided."""
    given = getattr(config, "workerinput", None)
    config.stash[LEFT_OUT] = given["testbed_left_out"] if given else _is_tested(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["testbed_left_out"] = node.config.stash[LEFT_OUT]


def _is_tested(config: pytest.Config) -> bool:
    return _may_leave_out(config) and stamp().exists() and stamp().read_text() == digest(config.rootpath)


def _may_leave_out(config: pytest.Config) -> bool:
    """Tests that are named on the command line are run."""
    return os.environ.get("TEST_TESTBED") == "changed" and config.args_source == pytest.Config.ArgsSource.TESTPATHS


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return (config.stash[LEFT_OUT] and collection_path in [config.rootpath / name for name in TESTS]) or None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash[LEFT_OUT]:
        terminalreporter.write_line(LINE)
    elif _may_leave_out(config) and _is_whole(config) and _have_passed(terminalreporter):
        stamp().parent.mkdir(parents=True, exist_ok=True)
        stamp().write_text(digest(config.rootpath))


def _is_whole(config: pytest.Config) -> bool:
    """Whether the run had no selection of its own and went to its end."""
    chosen = config.option
    return not (chosen.keyword or chosen.markexpr or chosen.maxfail or chosen.collectonly or chosen.deselect)


def _have_passed(terminalreporter: pytest.TerminalReporter) -> bool:
    def of_testbed(kind: str) -> bool:
        return any(report.nodeid.startswith(TESTS) for report in terminalreporter.stats.get(kind, []))

    return of_testbed("passed") and not of_testbed("failed") and not of_testbed("error")
