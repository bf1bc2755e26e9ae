"""Programs of other people leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.guard import living_in
from tests.clients.process import ClientFailed, Scratch, run_to_end
from tests.waiting import until

pytestmark = [pytest.mark.servers, pytest.mark.strict]

FOR_EVER = "sleep 1000"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch.below(tmp_path)


def shell(script: str, scratch: Scratch, *, seconds: float = 20.0, said: str = "") -> str:
    return run_to_end(["sh", "-c", script], scratch, {"COLOUR": "red"}, seconds=seconds, said=said)


def test_a_program_is_run_in_its_own_home_and_folder(scratch: Scratch) -> None:
    said = shell("cat; echo $HOME $COLOUR; pwd", scratch, said="Hello\n")
    assert said.splitlines() == ["Hello", f"{scratch.home} red", str(scratch.work)]


def test_a_failure_tells_what_the_program_said(scratch: Scratch) -> None:
    with pytest.raises(ClientFailed, match=r"exit code 3:\nfirst\n\nsecond"):
        shell("echo first; echo second >&2; exit 3", scratch)


def test_a_program_that_does_not_end_is_ended_with_its_children(scratch: Scratch) -> None:
    with pytest.raises(ClientFailed, match="did not end within 1 s"):
        shell(f"{FOR_EVER} & {FOR_EVER}", scratch, seconds=1.0)
    assert living_in(scratch.home) == {}


def test_a_daemon_that_a_program_leaves_in_a_session_of_its_own_is_ended(scratch: Scratch) -> None:
    daemon = f"touch begun; exec {FOR_EVER}"
    shell(f"setsid sh -c '{daemon}' >/dev/null 2>&1 & while [ ! -e begun ]; do :; done", scratch)
    assert living_in(scratch.home) == {}


def test_a_client_ends_when_whoever_runs_it_is_killed(scratch: Scratch) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.clients.process import Scratch, run_to_end\n"
        "scratch = Scratch(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        f"run_to_end(['sh', '-c', 'touch begun; exec {FOR_EVER}'], scratch, {{}}, seconds=60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(scratch.home), str(scratch.work)]) as tests:
        try:
            until(lambda: (scratch.work / "begun").exists())
            until(lambda: living_in(scratch.home))
        finally:
            tests.kill()
    until(lambda: not living_in(scratch.home))
