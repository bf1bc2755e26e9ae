"""Tests that programs which tests start end when the test run ends in any way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from testbed.cache import REPOSITORY
from tests.waiting import SOON, until

pytestmark = [pytest.mark.servers, pytest.mark.strict]

MARK = "MARK_OF_A_TEST_RUN"
TESTS = """
import os
import time
from pathlib import Path

import pytest

from testbed.redis import Redis
from testbed.service import Service
from tests.letta_server import LettaServerStub
from tests.services import environment


@pytest.mark.parametrize("number", [1, 2])
def test_waiting(number, tmp_path):
    with LettaServerStub() as letta, Redis():
        settings = environment(letta.url, tmp_path, MARK_OF_A_TEST_RUN=os.environ["MARK_OF_A_TEST_RUN"])
        with Service(settings, tmp_path / "log"):
            Path(f"started-{number}").touch()
            time.sleep(600)
"""


@pytest.fixture
def run(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A run of pytest with two workers, each in the middle of a test that has started a bridge and a Redis."""
    (tmp_path / "test_waiting.py").write_text(TESTS)
    (tmp_path / "pytest.ini").touch()
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), MARK: uuid.uuid4().hex}
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-n", "2", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "tests")],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=heed_interrupts,
    ) as process:
        mark = environment[MARK]
        try:
            until(lambda: len(list(tmp_path.glob("started-*"))) == 2, 3 * SOON)
            # pytest and its two workers, two of Redis, two of gunicorn with at least one worker each.
            assert len(of_run(mark)) >= 9
            yield process
            process.wait()
            until(lambda: not of_run(mark))
        finally:
            for pid in of_run(mark):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def heed_interrupts() -> None:
    """Undoes what a shell does with programs that it starts in the background: they ignore Ctrl-C, and so do theirs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def of_run(mark: str) -> dict[int, str]:
    """Returns the living processes of a run, with their commands."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def test_an_interrupted_run_leaves_no_process(run: subprocess.Popen[bytes]) -> None:
    os.killpg(run.pid, signal.SIGINT)


def test_a_run_that_is_killed_with_its_workers_leaves_no_process(run: subprocess.Popen[bytes]) -> None:
    os.killpg(run.pid, signal.SIGKILL)
