"""Errors that a client gets when the Letta server is down or refuses the bridge."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from testbed.agents import create_agent
from testbed.model import ScriptedModel
from testbed.server import running
from testbed.service import Service
from tests.real.conftest import bridge_environment, say
from tests.real.world import Agent, World

pytestmark = pytest.mark.real

PASSWORD = "correct-horse-battery"


@pytest.mark.two_servers
@pytest.mark.fault("Letta refuses connections, or has no address")
def test_a_server_that_is_down_is_a_bad_gateway_until_it_is_back(world: World, agent: Agent, stream: bool) -> None:
    world.proxy.down()
    try:
        reply = agent.ask("Hello", stream=stream)
    finally:
        world.proxy.up()
    assert reply.status == 502
    assert reply.error is not None
    assert reply.error["code"] == "letta_unreachable"
    assert 1 <= int(reply.headers["Retry-After"]) <= 60
    assert agent.ask("Hello", stream=stream).text == "You said: Hello"


@pytest.mark.parametrize(
    ("password", "status", "code"), [(PASSWORD, 200, None), ("wrong-password", 502, "letta_credentials")]
)
@pytest.mark.full
def test_the_bridge_signs_in_with_the_password_of_the_server(
    secured: tuple[str, str], tmp_path: Path, password: str, status: int, code: str | None
) -> None:
    base_url, name = secured
    environment = bridge_environment(base_url, tmp_path, {"LETTA_API_KEY": password})
    with Service(environment, tmp_path / "bridge.log") as bridge:
        body = {"model": name, "messages": [{"role": "user", "content": "Hello"}]}
        answer = requests.post(f"{bridge.url}/v1/chat/completions", json=body, timeout=60)
        ready = requests.get(f"{bridge.url}/readyz", timeout=60).json()
    assert ready["letta"] == (code or "ok")
    assert answer.status_code == status
    assert answer.json().get("error", {}).get("code") == code
    log = (tmp_path / "bridge.log").read_text()
    assert password not in answer.text
    assert password not in log


@pytest.fixture(scope="module")
def secured(model: ScriptedModel) -> Iterator[tuple[str, str]]:
    """The address of a server that asks for a password, and the name of an agent there."""
    with running("0.11.7", model_url=model.url, secure_password=PASSWORD, progress=say) as server:
        made = create_agent(
            server.base_url, name="guarded", agent_type="memgpt_agent", model_url=model.url, password=PASSWORD
        )
        yield server.base_url, made["name"]
