"""A process that was killed is known to have ended, others are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bridge.store.processes import name_of_this_process, process_has_ended

NAME = "from bridge.store.processes import name_of_this_process; print(name_of_this_process(), flush=True); input()"


@pytest.fixture
def other() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_process_has_ended_once_it_was_killed(other: subprocess.Popen[str]) -> None:
    with other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert name != name_of_this_process()
        assert not process_has_ended(name)
        assert not process_has_ended(name_of_this_process())
        other.kill()
        while not process_has_ended(name):  # as a zombie, before its parent has waited for it
            pass
    assert process_has_ended(name)


def test_a_later_process_with_the_same_number_is_another_one() -> None:
    place, pid, _ = name_of_this_process().rsplit(":", 2)
    assert process_has_ended(f"{place}:{pid}:1")


@pytest.mark.parametrize("name", ["", "::", "elsewhere:1:1", "elsewhere/4026531836:999999999:5"])
def test_a_process_elsewhere_is_not_known_to_have_ended(name: str) -> None:
    assert not process_has_ended(name)
