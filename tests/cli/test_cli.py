"""The commands `tools` and `sweep`, on a Letta in memory, and how commands start."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from flask import Flask

from app import assemble_parts, create_app
from bridge.cli.group import make_command_group
from bridge.cli.showing import rows_as_table
from bridge.config import Settings
from bridge.errors import LettaUnreachable
from bridge.letta.gateway import Agent
from bridge.sync import cleanup
from bridge.sync.ownership import idle_since, tags_when_idle
from tests.toolsets import Bridge, SharedLetta, stub
from tests.waiting import SOON

ROOT = Path(__file__).parents[2]
READ, WRITE = stub("fs.read/file"), stub("write_file")

TIMES_AND_COUNTS = ("agents", "calls", "errors", "last", "used", "idle", "since")

Run = Callable[..., Result]


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    agent = letta.has_agent("Ada\nLovelace")
    letta.has_tool("theirs")
    return agent


@pytest.fixture
def run(settings: Settings, letta: SharedLetta, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(cleanup, "GRACE", 0.0)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(
            make_command_group(lambda: settings, lambda known: assemble_parts(known, letta)), arguments
        )

    return run


@pytest.fixture
def placed(letta: SharedLetta, ada: Agent) -> None:
    """Makes one stub that the agent has, and one that no agent has had for years."""
    bridge = Bridge(letta)
    bridge.sync(ada, READ, WRITE)
    bridge.sync(ada, READ)
    letta.edits(letta.tool("write_file"), tags=tuple(tags_when_idle(letta.tool("write_file"), 1_500_000_000)))


@pytest.mark.usefixtures("placed")
def test_the_tools_are_listed_for_people(run: Run) -> None:
    done = run("tools")
    assert done.exit_code == 0
    assert [line.split() for line in done.output.splitlines()] == [
        [*("client", "name", "server", "name", "state", "digest"), *TIMES_AND_COUNTS],
        ["fs.read/file", READ.name, "attached", READ.digest[:12], "Ada?Lovelace", "0", "0", "-", "-"],
        ["write_file", "write_file", "stale", WRITE.digest[:12], "-", "0", "0", "-", "2017-07-14T02:40:00+00:00"],
    ]


@pytest.mark.usefixtures("placed")
def test_the_tools_are_listed_for_programs(run: Run, ada: Agent) -> None:
    rows: list[dict[str, Any]] = json.loads(run("tools", "--json").output)
    assert rows[0] == {
        "client_name": "fs.read/file",
        "server_name": READ.name,
        "state": "attached",
        "digest": READ.digest[:12],
        "agents": [{"id": ada.id, "name": "Ada\nLovelace"}],
        "calls": 0,
        "errors": 0,
        "last_used": None,
        "idle_since": None,
    }
    assert rows[1]["agents"] == []


def test_an_empty_list_of_tools_says_so(run: Run, ada: Agent) -> None:
    assert run("tools").output == "No tool of a client is on the server.\n"
    assert json.loads(run("tools", "--json").output) == []


@pytest.mark.usefixtures("placed")
def test_a_sweep_says_what_it_did(run: Run, letta: SharedLetta) -> None:
    done = run("sweep")
    assert [line.split() for line in done.output.splitlines()] == [
        ["done", "client", "name", "server", "name"],
        ["deleted", "write_file", "write_file"],
    ]
    assert not letta.has("write_file")
    assert run("sweep").output == "Nothing to do: 1 tool of clients, none of them idle for long.\n"


@pytest.mark.usefixtures("placed")
def test_a_dry_run_shows_the_same_and_changes_nothing(run: Run, letta: SharedLetta) -> None:
    assert run("sweep", "--dry-run").output.startswith("Nothing was changed. A sweep would do this:\n")
    shown = json.loads(run("sweep", "--dry-run", "--json").output)
    assert shown == [{"done": "deleted", "client_name": "write_file", "server_name": "write_file"}]
    assert letta.has("write_file")
    assert json.loads(run("sweep", "--json").output) == shown


def test_a_sweep_follows_the_settings(
    parameters: dict[str, Any], letta: SharedLetta, ada: Agent, request: pytest.FixtureRequest
) -> None:
    parameters["stub_idle"] = 31_536_000.0
    bridge = Bridge(letta)
    bridge.sync(ada, READ)
    bridge.sync(ada)
    run = request.getfixturevalue("run")
    assert "marked idle" in run("sweep").output
    assert idle_since(letta.tool(READ.name)) is not None
    assert "Nothing to do" in run("sweep").output


@pytest.mark.parametrize("command", ["tools", "sweep"])
def test_a_server_that_is_down_is_reported_in_one_line(run: Run, letta: SharedLetta, command: str) -> None:
    letta.fails(LettaUnreachable("The Letta server at http://letta.test can't be reached."), at="tools")
    done = run(command)
    assert done.exit_code == 1
    assert done.output == "Error: The Letta server at http://letta.test can't be reached.\n"


def test_flasks_command_line_has_the_same_commands(settings: Settings, letta: SharedLetta) -> None:
    app = create_app(settings, letta)
    done = app.test_cli_runner().invoke(args=["bridge", "tools"])
    assert done.output == "No tool of a client is on the server.\n"


@pytest.mark.servers
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "LETTA_BASE_URL is not set"),
        ({"LETTA_BASE_URL": "http://127.0.0.1:9", "BRIDGE_ALLOW_ANONYMOUS": "1"}, "Error: The Letta server at"),
    ],
)
def test_the_program_reads_its_settings_from_the_environment(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    whole = {**environment, "PATH": os.environ["PATH"], "BRIDGE_DATA_DIR": str(tmp_path), "DYNO": "no .env file"}
    done = subprocess.run(
        [ROOT / "letta-bridge", "tools"], cwd=tmp_path, env=whole, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.servers
@pytest.mark.parametrize("has_packages", [True, False])
def test_without_a_virtual_environment_the_program_uses_the_system_s_packages_or_makes_one(
    tmp_path: Path, has_packages: bool
) -> None:
    """An image and Heroku have the packages, a new clone has not."""
    for name in ("app.py", "bridge"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "letta-bridge", tmp_path)
    runs = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    programs = tmp_path / "programs"
    make_program(programs / "python3", runs if has_packages else "#!/bin/sh\nexit 1\n")
    make_program(tmp_path / "python", runs)
    (tmp_path / "Makefile").write_text(".venv/.can-run:\n\t@echo installing; mkdir -p .venv/bin; mv python .venv/bin\n")
    done = subprocess.run(
        [tmp_path / "letta-bridge", "keys", "new", "phone", "--json"],
        cwd="/",
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["name"] == "phone"
    assert done.stderr == ("" if has_packages else "installing\n")


@pytest.mark.servers
def test_an_unfinished_virtual_environment_is_said(tmp_path: Path) -> None:
    for name in ("app.py", "bridge"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "letta-bridge", tmp_path)
    make_program(tmp_path / ".venv" / "bin" / "python", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    done = subprocess.run([tmp_path / "letta-bridge", "doctor"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(". `make run` installs what the commands need.\n")
    assert "Traceback" not in done.stderr


def make_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o700)


@pytest.mark.servers
def test_the_program_works_from_any_folder_and_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ROOT / "letta-bridge")
    done = subprocess.run(
        [tmp_path / "link", "--help"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("Usage: letta-bridge [OPTIONS] COMMAND")


def test_a_table_is_as_wide_as_its_widest_cells() -> None:
    assert rows_as_table([{"a_b": "x", "c": []}, {"a_b": None, "c": [{"name": "one"}, {"name": "two"}]}]) == (
        "a b  c\nx    -\n-    one, two"
    )


# --- after a turn -----------------------------------------------------------------------------------------


def test_a_sweep_runs_after_a_turn_when_it_is_due(
    settings: Settings, letta: SharedLetta, ada: Agent, placed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "GRACE", 0.0)
    app = create_app(settings, letta)
    last = settings.data_dir / "last-sweep"
    ask(app, ada)
    assert last.exists()
    os.utime(last, (0, 0))
    ask(create_app(settings, letta), ada)
    wait_for_sweep()
    assert not letta.has("write_file")
    assert letta.has(READ.name)


def ask(app: Flask, agent: Agent) -> None:
    body = {"model": agent.id, "messages": [{"role": "user", "content": "Hello"}]}
    with app.test_client().post("/v1/chat/completions", json=body) as response:
        assert response.status_code == 200


def wait_for_sweep() -> None:
    for thread in threading.enumerate():
        if thread.name == "sweep":
            thread.join(SOON)
