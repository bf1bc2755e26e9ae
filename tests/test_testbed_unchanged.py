"""When the testbed's own tests are left out of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.cache import REPOSITORY
from tests.testbed_unchanged import LINE, digest

pytest_plugins = ["pytester"]


class Project:
    """A repository with a testbed, a test of it, and another test."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.test = pytester.path / "tests" / "testbed" / "test_box.py"
        self.code = pytester.path / "testbed" / "box.py"
        for file, text in (
            (self.code, "SIZE = 3\n"),
            (self.test, "def test_box():\n    assert True\n"),
            (pytester.path / "tests" / "test_else.py", "def test_else():\n    assert True\n"),
        ):
            file.parent.mkdir(exist_ok=True, parents=True)
            file.write_text(text)
        pytester.makeini("[pytest]\ntestpaths = tests\n")

    def passes(self, *arguments: str, failed: int = 0) -> tuple[int, bool]:
        """Runs the tests: how many passed, and whether the run says that some were left out."""
        done = self._pytester.runpytest("-p", "tests.testbed_unchanged", *arguments)
        outcomes = done.parseoutcomes()
        assert outcomes.get("failed", 0) == failed
        return outcomes.get("passed", 0), LINE in done.outlines


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("TESTBED_CACHE", str(pytester.path / "cache"))
    monkeypatch.setenv("TEST_TESTBED", "changed")
    return Project(pytester)


def test_tests_that_passed_are_left_out_until_the_testbed_changes(project: Project) -> None:
    assert project.passes() == (2, False)
    assert project.passes() == (1, True)
    assert project.passes("tests/testbed") == (1, False)
    project.code.write_text("SIZE = 4\n")
    assert project.passes() == (2, False)
    assert project.passes() == (1, True)


@pytest.mark.servers
def test_the_workers_of_a_run_leave_them_out_too(project: Project) -> None:
    assert project.passes("-n", "1") == (2, False)
    assert project.passes("-n", "1") == (1, True)


def test_tests_that_failed_are_run_again(project: Project) -> None:
    project.test.write_text("def test_box():\n    assert False\n")
    for _ in range(2):
        assert project.passes(failed=1) == (1, False)


@pytest.mark.parametrize("selection", [["-k", "box"], ["-m", "not slow"], ["--maxfail", "1"], ["tests"]])
def test_a_run_of_a_selection_proves_nothing(project: Project, selection: list[str]) -> None:
    assert project.passes(*selection)[1] is False
    assert project.passes() == (2, False)


def test_without_the_setting_all_tests_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.passes()
    monkeypatch.delenv("TEST_TESTBED")
    assert project.passes() == (2, False)


def test_the_digest_changes_with_a_file_its_name_and_the_packages(tmp_path: Path) -> None:
    seen = {digest(tmp_path)}
    (tmp_path / "testbed").mkdir()
    for name, text in (("testbed/a.py", "1"), ("testbed/a.py", "2"), ("testbed/b.py", "2"), ("requirements.txt", "x")):
        (tmp_path / name).write_text(text)
        seen.add(digest(tmp_path))
    assert len(seen) == 5
