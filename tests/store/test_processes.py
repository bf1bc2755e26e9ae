"""Processes that were killed are known to be gone, others are not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bridge.store.processes import is_gone, own_name

NAME = "from bridge.store.processes import own_name; print(own_name(), flush=True); input()"


@pytest.fixture
def other() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_one_that_lives_is_not_gone_and_one_that_was_killed_is(other: subprocess.Popen[str]) -> None:
    with other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert name != own_name()
        assert not is_gone(name)
        assert not is_gone(own_name())
        other.kill()
        while not is_gone(name):  # as a zombie, before its parent has looked
            pass
    assert is_gone(name)


def test_another_process_with_its_number_does_not_stand_for_it() -> None:
    place, pid, _ = own_name().rsplit(":", 2)
    assert is_gone(f"{place}:{pid}:1")


@pytest.mark.parametrize("name", ["", "::", "elsewhere:1:1", "elsewhere/4026531836:999999999:5"])
def test_of_processes_elsewhere_nothing_is_known(name: str) -> None:
    assert not is_gone(name)
