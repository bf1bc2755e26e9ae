"""Starts the processes of the benchmark: the mock Letta, the bridge as in its Procfile, and LiteLLM's proxy."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from bench.client_requests import Json
from bench.errors import BenchFailed
from testbed.network import free_port
from testbed.service import ROOT, Service

LETTA = "0.16.1"
LITELLM = "1.106.2"
START_SECONDS = 240.0
# One worker may have to serve all streams, because connections are not distributed evenly.
MOST_TURNS = "224"
WORKERS = "2"


class ServerProcess:
    """A process that serves a port."""

    def __init__(self, command: Sequence[str], port: int, environment: dict[str, str], log: Path) -> None:
        self.port = port
        self._log = log
        with log.open("ab") as output:
            self._popen = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )

    @property
    def pid(self) -> int:
        return self._popen.pid

    def wait_for(self, path: str) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._popen.poll() is None:
            with suppress(OSError, http.client.HTTPException):
                if send(self.port, "GET", path)[0] == 200:
                    return
            time.sleep(0.1)
        self.stop()
        last = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
        raise BenchFailed(f"{self._popen.args!r} did not start:\n{last}")

    def stop(self) -> None:
        self._popen.terminate()
        try:
            self._popen.wait(20)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


class MockProcess(ServerProcess):
    """A mock Letta. `new_calls` counts the calls since the last `control` or `new_calls`."""

    def control(self, **commands: Any) -> Json:
        status, body = send(self.port, "POST", "/bench", commands)
        if status != 200:
            raise BenchFailed(f"the mock does not understand {commands!r:.300}")
        answer: Json = json.loads(body)
        return answer

    def new_calls(self) -> dict[str, int]:
        calls: dict[str, int] = self.control()["calls"]
        return calls


@contextmanager
def mock(folder: Path, version: str = LETTA) -> Iterator[MockProcess]:
    port = free_port()
    command = [sys.executable, "-m", "bench.mock", "--port", str(port), "--version", version]
    process = MockProcess(command, port, {**os.environ}, folder / "mock.log")
    try:
        process.wait_for("/v1/health/")
        yield process
    finally:
        process.stop()


@contextmanager
def bridge(letta_url: str, folder: Path, **settings: str) -> Iterator[Service]:
    with TemporaryDirectory(dir=folder) as data, bridge_to_start(letta_url, folder, data, **settings) as service:
        yield service


def bridge_to_start(letta_url: str, folder: Path, data: str, **settings: str) -> Service:
    own = ("BRIDGE_", "LETTA_", "REDIS_", "WEB_")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(own)},
        "LETTA_BASE_URL": letta_url,
        "BRIDGE_HOST": "127.0.0.1",
        "BRIDGE_ALLOW_ANONYMOUS": "1",
        "BRIDGE_DATA_DIR": data,
        "BRIDGE_MAX_TURNS": MOST_TURNS,
        "WEB_CONCURRENCY": WORKERS,
        "PORT": str(free_port()),
        **settings,
    }
    return Service(environment, folder / "bridge.log")


@contextmanager
def floor(letta_url: str, folder: Path) -> Iterator[ServerProcess]:
    """The least service, with as many workers and threads as the bridge."""
    port = free_port()
    options = ["--bind", f"127.0.0.1:{port}", "--workers", WORKERS, "--threads", "64", "--worker-class", "gthread"]
    command = [
        sys.executable,
        "-m",
        "gunicorn",
        "--config",
        "/dev/null",
        *options,
        "--keep-alive",
        "95",
        "bench.floor:app",
    ]
    process = ServerProcess(command, port, {**os.environ, "LETTA_BASE_URL": letta_url}, folder / "floor.log")
    try:
        process.wait_for("/healthz")
        yield process
    finally:
        process.stop()


def bridge_port(service: Service) -> int:
    return int(service.environment["PORT"])


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


@contextmanager
def litellm(program: Path, openai_port: int, folder: Path) -> Iterator[ServerProcess]:
    port = free_port()
    model = {"model": "openai/bench", "api_base": f"{url(openai_port)}/v1", "api_key": "none"}
    config = folder / "litellm.json"
    config.write_text(json.dumps({"model_list": [{"model_name": "bench", "litellm_params": model}]}))
    # Its workers need more time to start than uvicorn waits by default.
    patience = ["--timeout_worker_healthcheck", str(int(START_SECONDS))]
    command = [program, "--config", config, "--host", "127.0.0.1", "--port", str(port), "--num_workers", "2", *patience]
    quiet = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    # No other machine can reach it, and without a key it has less work.
    quiet["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    process = ServerProcess([*map(str, command)], port, {**os.environ, **quiet}, folder / "litellm.log")
    try:
        process.wait_for("/health/liveliness")
        yield process
    finally:
        process.stop()


def installed_litellm(cache: Path) -> Path:
    """Installs LiteLLM's proxy in its own virtual environment, as its dependencies conflict with the bridge's."""
    folder = cache / f"litellm-{LITELLM}"
    program = folder / "bin" / "litellm"
    if not program.exists():
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "--quiet", "--clear", folder], check=True)
        python = str(folder / "bin" / "python")
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, f"litellm[proxy]=={LITELLM}"], check=True)
    return program


def first_answer(start: Callable[[], object], port: int, body: Json) -> float:
    """Returns the seconds from the call of `start` to the first answered turn."""
    started = time.monotonic()
    starting = Thread(target=start)
    starting.start()
    try:
        while time.monotonic() - started < START_SECONDS:
            with suppress(OSError, http.client.HTTPException):
                if send(port, "POST", "/v1/chat/completions", body)[0] == 200:
                    return time.monotonic() - started
            time.sleep(0.005)
    finally:
        starting.join()
    raise BenchFailed(f"no answer from port {port}")


def send(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Sends a request and returns status and body of the reply. A body other than bytes is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
        written = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, written, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
