"""Which tests may be tried once more when they fail, and how a run tells of them."""

from __future__ import annotations

import pytest

from testbed.cache import REPOSITORY
from tests.second_try import ANYTHING, TOO_LATE, failures_to_try_again

pytest_plugins = ["pytester"]

TESTS = """
import pytest

tries = []

@pytest.fixture(scope="session")
def server():
    tries.append("server")
    return tries

@pytest.mark.servers
def test_weather(server):
    tries.append("weather")
    assert tries.count("weather") == 2, "it rains"

def test_unit():
    assert False, "it is wrong"

@pytest.mark.servers
@pytest.mark.strict
def test_leak():
    assert False, "it leaks 1504 words"

@pytest.mark.servers
@pytest.mark.strict
def test_late_answer(server):
    tries.append("late")
    statuses = {200} if tries.count("late") == 2 else {200, 504}
    assert statuses == {200}

@pytest.mark.servers
def test_end(server):
    assert server.count("server") == 1
"""


@pytest.mark.parametrize("mark", ["real", "servers", "browser", "clients"])
def test_a_test_that_talks_to_something_outside_may_be_tried_again_unless_it_is_strict(mark: str) -> None:
    assert failures_to_try_again([mark, "timeout"]) == ANYTHING
    assert failures_to_try_again([mark, "timeout", "strict"]) == TOO_LATE


def test_a_unit_test_is_never_tried_again() -> None:
    assert failures_to_try_again(["timeout", "parametrize", "fault"]) is None


@pytest.mark.parametrize("workers", ["0", pytest.param("1", marks=pytest.mark.servers)])
def test_a_run_lists_the_tests_that_needed_a_second_try(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """Also with workers. A fixture of the session is not made again for the second try."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    pytester.makeini("[pytest]\nmarkers =\n    servers\n    strict\n")
    pytester.makepyfile(TESTS)
    done = pytester.runpytest("-p", "tests.second_try", "-n", workers, "--dist", "loadscope")
    done.assert_outcomes(passed=3, failed=2)
    at = done.outlines.index(next(line for line in done.outlines if "= needed a second try =" in line))
    assert "::test_weather (call): AssertionError: it rains" in done.outlines[at + 1]
    assert "::test_late_answer (call): assert {200, 504} == {200}" in done.outlines[at + 2]
    assert "second_try.py" not in done.outlines[at + 3]
