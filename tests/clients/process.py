"""Runs foreign programs in a home of their own, for a limited time, so that nothing of them stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.tool import environment
from tests.clients import guard as guard_program


class ClientFailed(AssertionError):
    """A client failed. The text ends with its output."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """The home and the working folder of one client in one test, both empty at first."""

    home: Path
    work: Path

    @classmethod
    def below(cls, folder: Path) -> Scratch:
        made = cls(folder / "home", folder / "work")
        made.home.mkdir()
        made.work.mkdir()
        return made

    def environment(self, **settings: str) -> dict[str, str]:
        """Returns an environment with only what programs need to run."""
        return environment(HOME=str(self.home), TMPDIR=str(self.home), **settings)


def run_to_end(
    command: Sequence[str], scratch: Scratch, settings: Mapping[str, str], *, seconds: float, said: str = ""
) -> str:
    """Runs a client until it ends by itself; returns its standard output. `said` is its standard input."""
    log = scratch.home / "errors.log"
    with running(command, scratch, settings, log, reads=True) as process:
        try:
            output, _ = process.communicate(said.encode(), timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ClientFailed(f"{command[0]} did not end within {seconds:.0f} s:\n{_tail(log)}") from None
    text = output.decode(errors="replace")
    if process.returncode != 0:
        raise ClientFailed(f"{command[0]} ended with exit code {process.returncode}:\n{text}\n{_tail(log)}")
    return text


@contextmanager
def running(
    command: Sequence[str], scratch: Scratch, settings: Mapping[str, str], log: Path, *, reads: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a client for the length of the block. Without `reads`, its output goes to the log."""
    with _guarded(scratch.home), log.open("ab") as errors:
        process = subprocess.Popen(
            list(command),
            cwd=scratch.work,
            env=scratch.environment(**settings),
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=subprocess.PIPE if reads else errors,
            stderr=errors,
            start_new_session=True,
        )
        with _ended(process):
            yield process


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def _guarded(home: Path) -> Iterator[None]:
    """Ends everything that the client has started, at the end of the block or of this process."""
    guard = subprocess.Popen(
        [sys.executable, guard_program.__file__, str(home)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        _, complaint = guard.communicate()
        if guard.returncode != 0:
            raise ClientFailed(complaint.decode(errors="replace"))


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])
