"""A Letta server that this process starts and that ends with it."""

import os
import signal
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from testbed import tool
from testbed.cache import Progress
from testbed.errors import StartFailed, tail
from testbed.handle import Server
from testbed.install import Installation, install
from testbed.network import free_port
from testbed.postgres import Cluster, cluster, make_database
from testbed.slots import ServerState, Slot

LAUNCH = Path(__file__).parent / "inside" / "launch.py"
# No process listens there. A server without a model works until an agent needs one.
NO_MODEL = "http://127.0.0.1:9/v1"
READY_SECONDS = 240.0
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """How a server is started."""

    model_url: str = NO_MODEL
    model_key: str | None = None
    password: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The parts that a server needs before it can be started."""

    installation: Installation
    cluster: Cluster | None
    database: str


class OwnServer(Server):
    """A server in a slot that this process holds. When the process ends in any way, the server ends too."""

    def __init__(self, slot: Slot, lock: int, options: Options, progress: Progress) -> None:
        super().__init__(slot, ServerState(slot.version, model_url=options.model_url, password=options.password))
        self._options = options
        self._progress = progress
        self._lock = lock
        self._held = ExitStack()
        self._held.callback(os.close, lock)
        self._process: subprocess.Popen[bytes] | None = None
        self._prepared: Prepared | None = None

    def begin(self, given_up: threading.Event | None = None) -> None:
        """Installs the version, makes its database, starts it and waits until it answers."""
        try:
            self._prepared = self._prepare()
            self.slot.log.unlink(missing_ok=True)
            self._start(self._prepared, free_port(self.slot.read().port), given_up or threading.Event())
        except BaseException:
            self.stop()
            raise

    def stay(self) -> None:
        """Lets the server continue to run when this process ends."""
        process = self._process
        if process is None or process.stdin is None:
            raise StartFailed(f"Letta {self.version} is not running.")
        process.stdin.write(b"!")
        process.stdin.close()
        # The process is not ours any more. Popen warns about a process that was not waited for.
        process.returncode = 0
        self._process = None
        self._held.close()

    def is_running(self) -> bool:
        """Whether its process exists, even if it does not answer."""
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Ends it and frees its slot."""
        self._end(STOP_SECONDS)
        self._held.close()

    def kill(self) -> None:
        """Kills it, as a crash would. `restart` starts it again."""
        self._end(0)

    def restart(self) -> None:
        """Ends it if it runs, and starts it again on the same port with the same data."""
        if self._prepared is None or self.state.port is None:
            raise StartFailed(f"Letta {self.version} has not been started.")
        self._end(STOP_SECONDS)
        if free_port(self.state.port) != self.state.port:
            raise StartFailed(f"Letta {self.version} cannot be restarted: port {self.state.port} has been taken.")
        self._start(self._prepared, self.state.port, threading.Event())

    def _prepare(self) -> Prepared:
        cache, fresh = self.slot.cache, self._options.fresh
        installation = install(self.version, cache, self._progress)
        if fresh:
            self.slot.empty()
        if installation.recipe.database == "sqlite":
            return Prepared(installation, None, "")
        using = self._held.enter_context(cluster(cache, self._progress))
        name = f"letta_{self.slot.name}"
        return Prepared(installation, using, make_database(using, installation, name, self._progress, fresh=fresh))

    def _start(self, prepared: Prepared, port: int, given_up: threading.Event) -> None:
        self._progress(f"starting Letta {self.version}…")
        started = time.monotonic()
        self.state = replace(self.state, port=port, pid=0, ready=False)
        self.slot.write(self.state)
        try:
            self._process = self._spawn(prepared, port)
            self.state = replace(self.state, pid=self._process.pid)
            self.slot.write(self.state)
            self._wait_until_ready(self._process, started + READY_SECONDS, given_up)
        except BaseException:
            self.kill()
            raise
        self.state = replace(self.state, ready=True)
        self.slot.write(self.state)
        self._progress(f"Letta {self.version} is ready after {time.monotonic() - started:.0f} s at {self.base_url}")

    def _spawn(self, prepared: Prepared, port: int) -> "subprocess.Popen[bytes]":
        command = [str(prepared.installation.python), "-P", str(LAUNCH), "server"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        if self.password is not None:
            command.append("--secure")
        (self.slot.home / "tmp").mkdir(parents=True, exist_ok=True)
        with self.slot.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.slot.home,
                env=server_environment(prepared, self.slot.home, self._options),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                # The server holds its slot and PostgreSQL as long as it runs.
                pass_fds=[self._lock, *([prepared.cluster.lease] if prepared.cluster else [])],
                start_new_session=True,
            )

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", deadline: float, given_up: threading.Event) -> None:
        while not self.is_healthy():
            if process.poll() is not None:
                raise self._failure(f"ended with exit code {process.returncode} while it started")
            if time.monotonic() > deadline:
                raise self._failure(f"was not ready within {READY_SECONDS:.0f} s")
            if given_up.wait(0.1):
                raise StartFailed(f"The start of Letta {self.version} was given up.")

    def _failure(self, what: str) -> StartFailed:
        log = self.log_path.read_text(errors="replace")
        return StartFailed(f"Letta {self.version} {what}; its log is {self.log_path}.\n{tail(log)}")

    def _end(self, patience: float) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if patience:
            signal_group(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        signal_group(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        # The slot is still held, so no process may take that process id for a server's.
        self.state = replace(self.state, pid=0, ready=False)
        self.slot.write(self.state)


def server_environment(prepared: Prepared, home: Path, options: Options) -> dict[str, str]:
    """Returns the whole environment of a server."""
    settings = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LETTA_DIR": str(home / ".letta"),
        "LETTA_TELEMETRY_ENABLED": "false",
        # By default, later versions open a connection for each operation, and sometimes hang.
        "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
        "TIKTOKEN_CACHE_DIR": str(prepared.installation.encodings),
        "OPENAI_API_KEY": options.model_key or "none-needed",
        "OPENAI_API_BASE": options.model_url,
        "OPENAI_BASE_URL": options.model_url,
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONUNBUFFERED": "1",
    }
    if options.password is not None:
        settings["LETTA_SERVER_PASSWORD"] = options.password
    if prepared.cluster is not None:
        # Letta requires TLS unless the address mentions it.
        settings["LETTA_PG_URI"] = prepared.cluster.uri(prepared.database, options="?sslmode=disable")
    environment = tool.environment(**settings)
    environment["PATH"] = f"{prepared.installation.python.parent}:{environment.get('PATH', os.defpath)}"
    return environment


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signals a server and the processes that it started: its process leads its own group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, number)
