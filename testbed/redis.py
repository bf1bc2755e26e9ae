"""A real Redis for the length of a block. A test can stop, start and pause it."""

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed import guarded
from testbed.cache import Cache, Progress, silent
from testbed.errors import RedisFailed, tail
from testbed.install import redis_program
from testbed.network import free_port

READY_SECONDS = 60.0


NO_FILES = ("--save", "", "--appendonly", "no")


class Redis:
    """A redis-server. Unless its `options` say otherwise, it has no files: its data is lost when it is started again,
    as after a failover.
    """

    def __init__(
        self,
        *,
        password: str = "",
        options: Sequence[str] = NO_FILES,
        cache: Cache | None = None,
        progress: Progress = silent,
    ) -> None:
        self._program = redis_program(cache or Cache.default(), progress)
        self._password = password
        self._options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")

    @property
    def url(self) -> str:
        secret = f":{self._password}@" if self._password else ""
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Starts it and waits until it accepts connections."""
        log = Path(self._folder.name) / "log"
        with log.open("ab") as output:
            self._process = guarded.start(
                [
                    *(str(self._program), "--port", str(self.port), "--bind", "127.0.0.1"),
                    *(*self._options, "--dir", self._folder.name),
                    *(("--requirepass", self._password) if self._password else ()),
                ],
                stdout=output,
                stderr=output,
            )
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RedisFailed(f"redis-server did not start\n{tail(log.read_text(errors='replace'))}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Kills it with SIGKILL, so that its clients lose their connections at any point."""
        if self._process is not None:
            guarded.end_group(self._process)
            self._process = None

    def pause(self) -> None:
        """Makes it accept connections without answering, until `resume`."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(7)[:1] in (b"+", b"-")
        except OSError:
            return False
