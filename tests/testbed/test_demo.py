"""Tests of `make run`: what it refuses, what it writes down, and a whole run in front of a stand-in for Letta."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import responses

from bridge.running import FOLDER, RunningBridge
from testbed import demo
from testbed.network import send
from testbed.service import ROOT, Service
from tests.letta_server import LettaServerStub
from tests.services import environment

URL = "http://127.0.0.1:8080"
LETTA = "http://letta.test:8283"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[responses.RequestsMock]:
    """Mocks HTTP with a proxy in the environment, as in networks that need one to install anything."""
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test:3128")
    with responses.RequestsMock() as mock:
        yield mock


def proxies(answers: responses.RequestsMock) -> list[Any]:
    return [dict(call.request.req_kwargs["proxies"]) for call in answers.calls]


def test_requests_to_local_servers_use_no_proxy(answers: responses.RequestsMock) -> None:
    answers.get(f"{URL}/v1/agents/", json=[{"id": "agent-1", "llm_config": {"context_window": 32_000}}])
    answers.patch(f"{URL}/v1/agents/agent-1", json={})
    demo._make_agent(URL, "ada", "letta_v1_agent", demo.Model("http://model.test/v1", "gpt", "a model"))
    assert answers.calls[0].request.params == {"name": "ada"}
    assert proxies(answers) == [{}, {}]


def test_waiting_for_the_service_uses_no_proxy(
    answers: responses.RequestsMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Started:
        def __init__(self, *_: Any, **__: Any) -> None:
            """Pretends to run."""

        def poll(self) -> None:
            return None

    monkeypatch.setattr("subprocess.Popen", Started)
    answers.get(f"{URL}/healthz", json={})
    Service({"PORT": "8080"}).start()
    assert proxies(answers) == [{}]


class Stopped(Exception):
    """Is raised in place of the start of the service."""


class Run:
    """Runs `make run` up to the start of the service, with Letta at LETTA unless `environment` has another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.running: RunningBridge | None = None
        self.port_is_free = True
        self.has_demo_letta = False
        self._monkeypatch.setattr(demo, "find_running", lambda: self.running)
        self._monkeypatch.setattr(demo, "free_port", lambda port: port if self.port_is_free else port + 1)
        self._monkeypatch.setattr(demo.Slot, "is_taken", lambda slot: self.has_demo_letta)
        self._monkeypatch.setattr(demo, "_serve", self._serve)

    def _serve(self, started: object, environment: dict[str, str], server: object) -> None:
        self.served = environment
        raise KeyboardInterrupt

    def __call__(self, **environment: str) -> dict[str, str]:
        """Returns the environment in which the service would be started."""
        for name, value in {"DYNO": "no .env file", "LETTA_BASE_URL": LETTA, **environment}.items():
            self._monkeypatch.setenv(name, value)
        demo.main()
        return self.served

    def fault(self, **environment: str) -> str:
        """Returns what it says in place of starting."""
        with pytest.raises(SystemExit) as ended:
            self(**environment)
        return str(ended.value)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    before = signal.getsignal(signal.SIGTERM)
    yield Run(monkeypatch)
    signal.signal(signal.SIGTERM, before)


def test_an_empty_port_means_the_default_port(run: Run) -> None:
    run.port_is_free = False
    assert run.fault(PORT="") == "\nmake run: port 8080 is in use. To use another: PORT=8081 make run"


@pytest.mark.parametrize(
    ("letta", "port", "has_demo_letta", "other"),
    [(LETTA, "8080", False, "8081"), ("", "8080", True, "8081"), ("", "9000", True, "9000")],
)
def test_a_second_run_says_where_the_first_is_and_how_to_use_its_letta(
    run: Run, letta: str, port: str, has_demo_letta: bool, other: str
) -> None:
    run.running = RunningBridge(URL, {"LETTA_BASE_URL": LETTA, "PORT": "8080"})
    run.has_demo_letta = has_demo_letta
    fault = run.fault(PORT=port, LETTA_BASE_URL=letta)
    assert f"`make run` already runs here: {URL}." in fault
    assert f"PORT={other} LETTA_BASE_URL={LETTA} make run" in fault


def test_a_second_run_with_its_own_port_and_letta_starts(run: Run) -> None:
    run.running = RunningBridge(URL, {"LETTA_BASE_URL": "http://other.test", "PORT": "8080"})
    assert run(PORT="9000")["PORT"] == "9000"


# --- addresses and keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "::1"])
def test_without_keys_only_this_machine_is_served(run: Run, host: str) -> None:
    served = run(BRIDGE_HOST=host)
    assert (served["BRIDGE_HOST"], served["BRIDGE_ALLOW_ANONYMOUS"]) == (host or "127.0.0.1", "1")


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_without_keys_an_address_that_others_reach_is_refused_with_what_is_missing(run: Run, host: str) -> None:
    fault = run.fault(BRIDGE_HOST=host)
    assert f"BRIDGE_HOST={host} lets other machines reach the bridge, and BRIDGE_API_KEYS is not set" in fault
    assert "`./letta-bridge keys new NAME` makes a key" in fault


def test_a_misspelt_variable_is_named_where_a_key_is_missing(run: Run) -> None:
    fault = run.fault(BRIDGE_HOST="0.0.0.0", BRIDGE_API_KEY="k" * 20)
    assert fault.endswith("BRIDGE_API_KEY is not a setting and is ignored; did you mean BRIDGE_API_KEYS?")


def test_both_variables_together_open_the_bridge_to_everybody(run: Run) -> None:
    assert run(BRIDGE_HOST="0.0.0.0", BRIDGE_ALLOW_ANONYMOUS="1")["BRIDGE_HOST"] == "0.0.0.0"
    assert run(BRIDGE_HOST="", BRIDGE_ALLOW_ANONYMOUS="1")["BRIDGE_HOST"] == "127.0.0.1"


@pytest.mark.parametrize("host", ["", "0.0.0.0", "127.0.0.1"])
def test_with_keys_the_address_is_as_it_was_set(run: Run, host: str) -> None:
    served = run(BRIDGE_HOST=host, BRIDGE_API_KEYS="k" * 20)
    assert (served["BRIDGE_HOST"], "BRIDGE_ALLOW_ANONYMOUS" in served) == (host, False)


# --- what stays and what is written down ------------------------------------------------------------------


def test_the_password_of_the_admin_page_stays_the_same_and_only_this_user_can_read_it(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    password = demo.lasting_password(folder)
    assert len(password) >= 12
    assert demo.lasting_password(folder) == password
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("")
    assert demo.lasting_password(folder) != password


def test_commands_get_the_settings_of_the_service_with_whole_paths_and_nothing_else() -> None:
    environment = {"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "BRIDGE_WAIT": "", "PORT": "8080"}
    assert demo.settings_of(environment) == {"PORT": "8080", "BRIDGE_DATA_DIR": f"{ROOT}/.bridge"}
    folders = {"BRIDGE_DATA_DIR": "/data", "BRIDGE_FILES": "files"}
    assert demo.settings_of(folders) == {"BRIDGE_DATA_DIR": "/data", "BRIDGE_FILES": f"{ROOT}/files"}


# --- a whole run ------------------------------------------------------------------------------------------


def plain_shell(folder: Path, *arguments: str) -> str:
    """Returns what a command prints in a shell that knows nothing of the bridge."""
    done = subprocess.run(
        [ROOT / "letta-bridge", *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


@contextmanager
def made_run(folder: Path, letta: str) -> Iterator[list[str]]:
    """Yields what `make run` prints in front of a Letta, and stops it at the end."""
    settings = environment(letta, folder, WEB_CONCURRENCY="1", BRIDGE_HOST="", BRIDGE_ALLOW_ANONYMOUS="")
    with subprocess.Popen(
        [sys.executable, "-m", "testbed.demo"],
        cwd=ROOT,
        env={**settings, "DYNO": "no .env file", "TESTBED_CACHE": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        try:
            yield list(takewhile(lambda line: not line.startswith("Ctrl-C"), run.stdout))
        finally:
            run.terminate()
            assert run.stdout.read().endswith("stopped\n")
    assert run.returncode == 0


@pytest.mark.servers
def test_what_it_prints_works_and_commands_in_a_plain_shell_find_it_as_long_as_it_runs(tmp_path: Path) -> None:
    with LettaServerStub() as letta:
        with made_run(tmp_path, letta.url) as printed:
            (example,) = [shlex.split(line) for line in printed if line.startswith("  try it")]
            answer = send("POST", example[3], body=json.loads(example[-1])).json()
            assert answer["choices"][0]["message"]["content"] == "Hello"
            assert plain_shell(tmp_path, "chat", "--say", "Hi") == "Hello\n"
            assert letta.url in plain_shell(tmp_path, "config")
        assert [file for file in FOLDER.glob("*.json") if letta.url in file.read_text()] == []
