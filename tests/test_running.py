"""How commands find the bridge that `make run` started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bridge.running import RunningBridge, announced, complete_from_running, find_running

BRIDGE = RunningBridge("http://127.0.0.1:8080", {"LETTA_BASE_URL": "http://letta.test", "BRIDGE_WAIT": "5"})

KILLED = """
import os, signal, sys
from pathlib import Path
from bridge.running import RunningBridge, announced
with announced(RunningBridge("http://127.0.0.1:1", {}), Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_bridge_is_found_as_long_as_it_runs(tmp_path: Path) -> None:
    folder = tmp_path / "running"
    assert find_running(folder) is None
    with announced(BRIDGE, folder):
        assert find_running(folder) == BRIDGE
        (file,) = folder.iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    assert [*folder.iterdir()] == []


@pytest.mark.servers
def test_a_bridge_that_was_killed_is_not_found_and_the_next_one_removes_its_file(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, tmp_path], cwd=Path(__file__).parent.parent, check=False)
    (left,) = tmp_path.iterdir()
    assert find_running(tmp_path) is None
    with announced(BRIDGE, tmp_path):
        assert not left.exists()
        assert find_running(tmp_path) == BRIDGE


def test_a_file_that_is_not_readable_as_json_is_ignored(tmp_path: Path) -> None:
    with announced(BRIDGE, tmp_path):
        (file,) = tmp_path.iterdir()
        file.write_text("{")
        assert find_running(tmp_path) is None


@pytest.mark.parametrize("set_", [{}, {"LETTA_BASE_URL": " "}, {"LETTA_BASE_URL": "http://letta.test"}])
def test_commands_take_what_is_not_set_from_the_running_bridge(set_: dict[str, str]) -> None:
    completed = complete_from_running({**set_, "BRIDGE_WAIT": "7", "BRIDGE_DRAIN": ""}, BRIDGE)
    assert completed == {"LETTA_BASE_URL": "http://letta.test", "BRIDGE_WAIT": "7"}


@pytest.mark.parametrize("set_", [{"LETTA_BASE_URL": "http://other.test"}, {"DYNO": "run.1"}])
def test_another_letta_or_a_platform_has_its_own_settings(set_: dict[str, str]) -> None:
    assert complete_from_running(set_, BRIDGE) == set_


def test_without_a_running_bridge_the_environment_stays_as_it_is() -> None:
    assert complete_from_running({"BRIDGE_DRAIN": ""}, None) == {"BRIDGE_DRAIN": ""}
