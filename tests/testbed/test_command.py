"""Tests of the command line, with a stand-in for Letta."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cache import REPOSITORY, Cache
from testbed.network import health
from testbed.up import bring_down
from tests.fake_letta import DYING, cache_with, install_fake

pytestmark = pytest.mark.servers

VERSION = "0.11.7"


class Command:
    """Runs commands of the testbed, as a person would."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "testbed", *arguments],
            cwd=REPOSITORY,
            env={"TESTBED_CACHE": str(self.cache.root), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def testbed(tmp_path: Path) -> Iterator[Command]:
    cache = cache_with(tmp_path, VERSION)
    yield Command(cache)
    bring_down(cache)


def test_up_prints_the_address_of_a_server_that_continues_to_run(testbed: Command) -> None:
    up = testbed("up", VERSION)
    assert up.returncode == 0
    assert health(up.stdout.strip()) == VERSION


def test_a_second_up_returns_the_same_server(testbed: Command) -> None:
    assert testbed("up", VERSION).stdout == testbed("up", VERSION).stdout


def test_two_simultaneous_ups_get_the_same_server(testbed: Command) -> None:
    command = [sys.executable, "-m", "testbed", "up", VERSION]
    env = {"TESTBED_CACHE": str(testbed.cache.root), "PATH": "/usr/bin:/bin"}
    both = [
        subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    answers = {process.communicate()[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(answers) == 1


def test_status_lists_the_running_servers_and_has_an_exit_code(testbed: Command) -> None:
    assert testbed("status").returncode == 3
    address = testbed("up", VERSION).stdout.strip()
    status = testbed("status")
    assert status.returncode == 0
    assert status.stdout.split()[:4] == [VERSION, "up", "ready", address]


def test_down_ends_the_server_and_succeeds_without_one(testbed: Command) -> None:
    address = testbed("up", VERSION).stdout.strip()
    assert testbed("down", VERSION).returncode == 0
    assert health(address) is None
    nothing = testbed("down")
    assert (nothing.returncode, nothing.stdout) == (0, "nothing to stop\n")


def test_versions_shows_which_are_installed(testbed: Command) -> None:
    rows = testbed("versions").stdout.splitlines()
    assert [row.split()[0] for row in rows if row.endswith("installed")] == [VERSION]
    assert len(rows) == 12


@pytest.mark.parametrize("command", ["up", "down", "install"])
def test_an_unknown_version_gives_one_line_on_standard_error(testbed: Command, command: str) -> None:
    failed = testbed(command, "9.9.9")
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert failed.stderr.startswith("testbed: Letta 9.9.9 is not in the testbed's table")
    assert len(failed.stderr.splitlines()) == 1


def test_a_server_that_does_not_start_is_reported_with_its_log(testbed: Command) -> None:
    install_fake(testbed.cache, "0.8.17", DYING)
    failed = testbed("up", "0.8.17")
    assert failed.returncode == 1
    assert "the disk is full" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_wrong_usage_has_its_own_exit_code(testbed: Command) -> None:
    assert testbed("sideways").returncode == 2
