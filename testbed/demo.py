"""What `make run` does: the service as its Procfile starts it and, where no Letta is given, a real local one."""

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

import requests

from bridge.config import environment_with_dotenv
from testbed.agents import MODEL, create_agent, embedding_config, llm_config
from testbed.errors import TestbedError
from testbed.model import ScriptedModel
from testbed.server import running
from testbed.service import ROOT, Service

LETTA = "0.16.1"
OPENAI = "https://api.openai.com/v1"
AGENTS = {"sample-letta-v1": "letta_v1_agent", "sample-memgpt-v2": "memgpt_v2_agent"}


@dataclass(frozen=True, slots=True)
class Model:
    """What the sample agents think with."""

    url: str
    name: str
    described: str


def main() -> None:
    environment = environment_with_dotenv(os.environ, ROOT)
    environment.setdefault("PORT", "8080")
    if not environment.get("BRIDGE_API_KEYS"):
        # Without keys, only this machine may come in.
        environment = {"BRIDGE_ALLOW_ANONYMOUS": "1", **environment, "BRIDGE_HOST": "127.0.0.1"}
    environment.setdefault("BRIDGE_ADMIN_PASSWORD", secrets.token_urlsafe(9))
    signal.signal(signal.SIGTERM, _stop)
    try:
        with contextlib.ExitStack() as started:
            if not environment.get("LETTA_BASE_URL"):
                _bring_up_letta(started, environment)
            _serve(started, environment)
    except KeyboardInterrupt:
        _say("stopped")
    except TestbedError as fault:
        sys.exit(f"\nmake run: {fault}")


def _bring_up_letta(started: contextlib.ExitStack, environment: dict[str, str]) -> None:
    _say(f"LETTA_BASE_URL is not set: starting a local Letta {LETTA} (kept in .cache, removed by `make clean`)")
    model = started.enter_context(_model(environment))
    server = started.enter_context(
        running(LETTA, model_url=model.url, model_key=environment.get("OPENAI_API_KEY"), progress=_say, slot="demo")
    )
    environment["LETTA_BASE_URL"] = server.base_url
    for name, agent_type in AGENTS.items():
        _make_agent(server.base_url, name, agent_type, model)
    _say(f"the sample agents {' and '.join(AGENTS)} think with {model.described}")


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
    """The agent of that name, made if it is not there; one of an earlier run gets the model of this one."""
    found = requests.get(f"{base_url}/v1/agents/", params={"name": name}, timeout=30).json()
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
    requests.patch(f"{base_url}/v1/agents/{found[0]['id']}", json=body, timeout=30).raise_for_status()


def _serve(started: contextlib.ExitStack, environment: Mapping[str, str]) -> None:
    """The Procfile's own command, until it ends or is stopped."""
    service = started.enter_context(Service(environment))
    _say(_welcome(service.url, environment))
    sys.exit(service.wait())


def _welcome(url: str, environment: Mapping[str, str]) -> str:
    key = "" if environment.get("BRIDGE_ALLOW_ANONYMOUS") == "1" else " -H 'Authorization: Bearer YOUR_KEY'"
    question = json.dumps({"model": _some_model(url, key), "messages": [{"role": "user", "content": "Hello!"}]})
    return f"""
The bridge is ready.

  base URL   {url}/v1      (for your client; the model is the name of an agent)
  try it     curl {url}/v1/chat/completions{key} -H 'Content-Type: application/json' -d '{question}'
  admin      {url}/admin/  (any user name; password: {environment["BRIDGE_ADMIN_PASSWORD"]})

Ctrl-C stops everything that was started here.
"""


def _some_model(url: str, key: str) -> str:
    """A model for the example: one of ours, else the first that the Letta server has."""
    if key:
        return "YOUR_AGENT"
    listed = requests.get(f"{url}/v1/models", timeout=30).json().get("data", [])
    names = [model["id"] for model in listed]
    return next((name for name in [*AGENTS, *names] if name in names), "YOUR_AGENT")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
