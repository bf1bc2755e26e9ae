"""Runs `make run`: the service as the Procfile starts it and, without LETTA_BASE_URL, a real local Letta."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from bridge.config import complete_environment, ignored_variables, read_settings, variable_rows
from bridge.errors import SettingsError
from bridge.letta.client import LettaServer
from bridge.running import RunningBridge, announced, find_running
from bridge.values import is_loopback
from testbed.agents import MODEL, create_agent, embedding_config, llm_config
from testbed.cache import Cache
from testbed.errors import StartFailed, TestbedError
from testbed.model import ScriptedModel
from testbed.network import free_port, send
from testbed.server import Server, running
from testbed.service import ROOT, Service
from testbed.slots import Slot
from testbed.welcome import NEW_KEY, find_agents, welcome

LETTA = "0.16.1"
SLOT = "demo"
LOOK_SECONDS = 2.0
OPENAI = "https://api.openai.com/v1"
AGENTS = {"sample-letta-v1": "letta_v1_agent", "sample-memgpt-v2": "memgpt_v2_agent"}


@dataclass(frozen=True, slots=True)
class Model:
    """The model of the sample agents."""

    url: str
    name: str
    description: str


def main() -> None:
    environment = complete_environment(os.environ, ROOT)
    environment["PORT"] = environment.get("PORT") or "8080"
    signal.signal(signal.SIGTERM, _stop)
    try:
        _allow_use_without_keys(environment)
        _check(environment)
        with contextlib.ExitStack() as started:
            server = None if environment.get("LETTA_BASE_URL") else _bring_up_letta(started, environment)
            _serve(started, environment, server)
    except KeyboardInterrupt:
        _say("stopped")
    except (TestbedError, SettingsError) as fault:
        sys.exit(f"\nmake run: {fault}")


def _allow_use_without_keys(environment: dict[str, str]) -> None:
    """Without keys, serves this machine only, unless the user has set both variables that open the bridge to others."""
    if environment.get("BRIDGE_API_KEYS"):
        return
    host = environment["BRIDGE_HOST"] = environment.get("BRIDGE_HOST") or "127.0.0.1"
    if not is_loopback(host) and not environment.get("BRIDGE_ALLOW_ANONYMOUS"):
        open_to_others = (
            f"BRIDGE_HOST={host} lets other machines reach the bridge, and BRIDGE_API_KEYS is not set: anybody who"
            f" reaches the port could talk to your agents.\n{NEW_KEY} makes a key and says where to put it. If nobody"
            " else can reach the port, set BRIDGE_ALLOW_ANONYMOUS=1 instead."
        )
        raise SettingsError("\n".join((open_to_others, *ignored_variables(environment))))
    environment["BRIDGE_ALLOW_ANONYMOUS"] = environment.get("BRIDGE_ALLOW_ANONYMOUS") or "1"


def _check(environment: Mapping[str, str]) -> None:
    """Reports settings that would stop the service before anything is installed."""
    read_settings({**environment, "LETTA_BASE_URL": environment.get("LETTA_BASE_URL") or "http://127.0.0.1"})
    port, running = environment["PORT"], find_running()
    if running is not None and _would_collide(environment, running):
        other = port if port != running.environment["PORT"] else int(port) + 1
        raise StartFailed(
            f"`make run` already runs here: {running.url}. Stop it (Ctrl-C), or start another bridge in front of the"
            f" same Letta: PORT={other} LETTA_BASE_URL={running.environment['LETTA_BASE_URL']} make run"
        )
    if free_port(int(port)) != int(port):
        raise StartFailed(f"port {port} is in use. To use another: PORT={int(port) + 1} make run")


def _would_collide(environment: Mapping[str, str], running: RunningBridge) -> bool:
    """Whether the running bridge has the port, or the only Letta that `make run` can start."""
    has_letta = not environment.get("LETTA_BASE_URL") and Slot(Cache.default(), LETTA, SLOT).is_taken()
    return has_letta or running.environment["PORT"] == environment["PORT"]


def _bring_up_letta(started: contextlib.ExitStack, environment: dict[str, str]) -> Server:
    _say(f"LETTA_BASE_URL is not set: starting a local Letta {LETTA} (kept in .cache, removed by `make clean`)")
    model = started.enter_context(_model(environment))
    server = started.enter_context(
        running(LETTA, model_url=model.url, model_key=environment.get("OPENAI_API_KEY"), progress=_say, slot=SLOT)
    )
    environment["LETTA_BASE_URL"] = server.base_url
    for name, agent_type in AGENTS.items():
        _make_agent(server.base_url, name, agent_type, model)
    _say(f"the sample agents {' and '.join(AGENTS)} use {model.description}")
    return server


@contextlib.contextmanager
def _model(environment: Mapping[str, str]) -> Iterator[Model]:
    if environment.get("OPENAI_API_KEY"):
        url = environment.get("OPENAI_BASE_URL") or OPENAI
        name = environment.get("OPENAI_MODEL") or MODEL
        yield Model(url, name, f"{name} at {url}")
        return
    with ScriptedModel() as scripted:
        yield Model(scripted.url, MODEL, "a scripted model, as OPENAI_API_KEY is not set: it repeats what you say")


def _make_agent(base_url: str, name: str, agent_type: str, model: Model) -> None:
    """Makes the agent if it does not exist. An agent of an earlier run gets the model of this run."""
    found = send("GET", f"{base_url}/v1/agents/?name={name}", timeout=30).json()
    if not found:
        blocks = [
            {"label": "persona", "value": "I am a helpful assistant."},
            {"label": "human", "value": "I know nothing about the user yet."},
        ]
        create_agent(
            base_url, name=name, agent_type=agent_type, model_url=model.url, model=model.name, memory_blocks=blocks
        )
        return
    window = found[0]["llm_config"]["context_window"]
    body: dict[str, Any] = {
        "llm_config": llm_config(agent_type, model.url, model.name, window),
        "embedding_config": embedding_config(model.url),
    }
    send("PATCH", f"{base_url}/v1/agents/{found[0]['id']}", body=body, timeout=30).raise_for_status()


def _serve(started: contextlib.ExitStack, environment: dict[str, str], server: Server | None) -> None:
    """Runs the Procfile's command until it ends or is stopped, or until the Letta that was started here ends."""
    set_ = environment.get("BRIDGE_ADMIN_PASSWORD")
    password = set_ or lasting_password(Cache.default().root / SLOT)
    environment["BRIDGE_ADMIN_PASSWORD"] = password
    settings = read_settings(environment)
    service = started.enter_context(Service(environment))
    url = service.url + settings.url_prefix
    started.enter_context(announced(RunningBridge(url, settings_of(environment))))
    agents, trouble = find_agents(LettaServer(settings), list(AGENTS))
    _say(welcome(url, settings, agents, trouble, "as you set it" if set_ else password))
    while (code := service.wait(LOOK_SECONDS)) is None:
        if server is not None and not server.is_running():
            raise StartFailed(
                f"Letta has ended unexpectedly; its log is {server.log_path}. `make run` starts it again."
            )
    sys.exit(code)


def lasting_password(folder: Path) -> str:
    """Returns the password of the admin page, which stays the same from start to start. Only this user can read it."""
    path = folder / "admin-password"
    with contextlib.suppress(FileNotFoundError):
        if password := path.read_text().strip():
            return password
    folder.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    password = secrets.token_urlsafe(9)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{password}\n")
    return password


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings that the service has, with whole paths: commands may be called in another folder."""
    set_ = {row["variable"]: environment.get(row["variable"], "").strip() for row in variable_rows()}
    paths = {"BRIDGE_DATA_DIR": set_["BRIDGE_DATA_DIR"] or ".bridge", "BRIDGE_FILES": set_["BRIDGE_FILES"]}
    whole = {name: str(ROOT / path) for name, path in paths.items() if path}
    return {name: value for name, value in {**set_, **whole}.items() if value}


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
