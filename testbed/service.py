"""Starts the bridge as the Procfile does, in a process that ends when the process that started it ends."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Any, Self

import requests

from testbed import guarded
from testbed.errors import ServiceFailed
from testbed.network import send

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60.0
STOP_SECONDS = 30.0
NO_PARAMETERS: Mapping[str, Any] = MappingProxyType({})


class Service:
    """A running bridge. It writes to the file `log`, or else to the output of this process.

    `parameters` are fields of Settings that the environment does not change.
    """

    def __init__(
        self, environment: Mapping[str, str], log: Path | None = None, parameters: Mapping[str, Any] = NO_PARAMETERS
    ) -> None:
        self.environment = {**environment, "PATH": _path(environment)}
        self._command = web_command()
        if parameters:
            self.environment["TEST_PARAMETERS"] = json.dumps(dict(parameters))
            self._command = f"{shlex.quote(sys.executable)} -m testbed.tuned_service"
        self.url = local_url(environment)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id of gunicorn's master."""
        assert self._process is not None
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """The process ids of its workers."""
        return [int(child) for child in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def start(self) -> None:
        """Starts it and waits until it answers."""
        output: IO[bytes] | None = self._log.open("ab") if self._log else None
        try:
            self._process = guarded.start(
                ["sh", "-c", f"exec {self._command}"],
                cwd=ROOT,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
        finally:
            if output is not None:
                output.close()
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Ends it as a platform does: with SIGTERM, and with SIGKILL if it does not end."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kills the master and its workers at once, with SIGKILL."""
        if self._process is not None:
            guarded.end_group(self._process)
            self._process = None

    def wait(self, seconds: float) -> int | None:
        """Waits until it ends, at most for so long. Returns its exit code if it has ended."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def _wait_until_it_answers(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServiceFailed(f"the service did not start{self._last_words()}")
            try:
                if send("GET", f"{self.url}/healthz", timeout=2).ok:
                    return
            except requests.RequestException:
                time.sleep(0.05)
        raise ServiceFailed(f"the service did not answer at {self.url}/healthz within {START_SECONDS:.0f} s")

    def _last_words(self) -> str:
        if self._log is None:
            return "; its output is above"
        return ":\n" + "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])


def local_url(environment: Mapping[str, str]) -> str:
    """Returns the address at which this machine reaches a bridge with these settings."""
    host = environment.get("BRIDGE_HOST", "").strip(" []") or "0.0.0.0"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{environment['PORT']}"


def web_command() -> str:
    """Returns the Procfile's command for `web`."""
    found = re.search(r"^web: (.+)$", (ROOT / "Procfile").read_text(), re.M)
    if found is None:
        raise ServiceFailed("the Procfile has no line that begins with `web:`")
    return found[1]


def _path(environment: Mapping[str, str]) -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
