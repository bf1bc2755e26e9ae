"""Runs `make run`: the service as the Procfile starts it and, without LETTA_BASE_URL, a real local Letta."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from bridge.config import complete_environment, read_settings
from bridge.errors import SettingsError
from testbed.agents import MODEL, create_agent, embedding_config, llm_config
from testbed.errors import StartFailed, TestbedError
from testbed.model import ScriptedModel
from testbed.network import free_port, send
from testbed.server import Server, running
from testbed.service import ROOT, Service

LETTA = "0.16.1"
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
    if not environment.get("BRIDGE_API_KEYS"):
        _say("BRIDGE_API_KEYS is not set: clients need no key, and only this machine is served")
        environment = {"BRIDGE_ALLOW_ANONYMOUS": "1", **environment, "BRIDGE_HOST": "127.0.0.1"}
    signal.signal(signal.SIGTERM, _stop)
    try:
        _check(environment)
        with contextlib.ExitStack() as started:
            server = None if environment.get("LETTA_BASE_URL") else _bring_up_letta(started, environment)
            _serve(started, environment, server)
    except KeyboardInterrupt:
        _say("stopped")
    except (TestbedError, SettingsError) as fault:
        sys.exit(f"\nmake run: {fault}")


def _check(environment: Mapping[str, str]) -> None:
    """Reports settings that would stop the service before anything is installed."""
    read_settings({**environment, "LETTA_BASE_URL": environment.get("LETTA_BASE_URL") or "http://127.0.0.1"})
    port = environment["PORT"]
    if free_port(int(port)) != int(port):
        raise StartFailed(
            f"port {port} is in use, perhaps by a bridge that runs already. To use another: PORT=8081 make run"
        )


def _bring_up_letta(started: contextlib.ExitStack, environment: dict[str, str]) -> Server:
    _say(f"LETTA_BASE_URL is not set: starting a local Letta {LETTA} (kept in .cache, removed by `make clean`)")
    model = started.enter_context(_model(environment))
    server = started.enter_context(
        running(LETTA, model_url=model.url, model_key=environment.get("OPENAI_API_KEY"), progress=_say, slot="demo")
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


def _serve(started: contextlib.ExitStack, environment: Mapping[str, str], server: Server | None) -> None:
    """Runs the Procfile's command until it ends or is stopped, or until the Letta that was started here ends."""
    password = environment.get("BRIDGE_ADMIN_PASSWORD") or secrets.token_urlsafe(9)
    service = started.enter_context(Service({**environment, "BRIDGE_ADMIN_PASSWORD": password}))
    _say(_welcome(service.url, environment, "as you set it" if environment.get("BRIDGE_ADMIN_PASSWORD") else password))
    while (code := service.wait(LOOK_SECONDS)) is None:
        if server is not None and not server.is_running():
            raise StartFailed(
                f"Letta has ended unexpectedly; its log is {server.log_path}. `make run` starts it again."
            )
    sys.exit(code)


def _welcome(url: str, environment: Mapping[str, str], password: str) -> str:
    key = " -H 'Authorization: Bearer YOUR_KEY'" if environment.get("BRIDGE_API_KEYS") else ""
    model, trouble = ("YOUR_AGENT", "") if key else _some_model(url)
    question = json.dumps({"model": model, "messages": [{"role": "user", "content": "Hello!"}]})
    serves_letta = environment.get("BRIDGE_LETTA_API", "") not in ("", "off")
    letta = f"\n  Letta API  {url}/letta   (for Letta Code and letta-client: docs/letta.md)" if serves_letta else ""
    return f"""
{trouble or "The bridge is ready."}

  base URL   {url}/v1      (for your client; the model is the name of an agent){letta}
  try it     curl {url}/v1/chat/completions{key} -H 'Content-Type: application/json' -d '{question}'
  admin      {url}/admin/  (password: {password})

Ctrl-C stops everything that was started here.
"""


def _some_model(url: str) -> tuple[str, str]:
    """Returns a model for the example, a sample agent or else the first agent, and what is wrong, if anything."""
    answer = send("GET", f"{url}/v1/models", timeout=30).json()
    if "error" in answer:
        return "YOUR_AGENT", f"The bridge runs, but can't serve yet: {answer['error']['message']}"
    names = [model["id"] for model in answer["data"]]
    found = next((name for name in [*AGENTS, *names] if name in names), None)
    return (found, "") if found else ("YOUR_AGENT", "The bridge is ready, but this Letta has no agent yet: make one.")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
