"""Tests of the output and the requests of `make run`. tests/real shows that it starts."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import responses

from testbed import demo
from testbed.service import Service

URL = "http://127.0.0.1:8080"
MODELS = {"data": [{"id": "ada"}]}


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
    answers.get(f"{URL}/v1/models", json=MODELS)
    demo._make_agent(URL, "ada", "letta_v1_agent", demo.Model("http://model.test/v1", "gpt", "a model"))
    assert demo._some_model(URL) == ("ada", "")
    assert answers.calls[0].request.params == {"name": "ada"}
    assert proxies(answers) == [{}, {}, {}]


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


def test_an_empty_port_means_the_default_port(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setenv("DYNO", "no .env file")
    monkeypatch.setenv("PORT", "")
    monkeypatch.setattr(demo, "free_port", lambda preferred: preferred + 1)
    try:
        with pytest.raises(SystemExit, match="port 8080 is in use"):
            demo.main()
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("anonymous", ["0", "1"])
def test_with_keys_the_example_has_a_key_and_the_service_is_not_queried(
    answers: responses.RequestsMock, anonymous: str
) -> None:
    environment = {"BRIDGE_API_KEYS": "k" * 20, "BRIDGE_ALLOW_ANONYMOUS": anonymous}
    text = demo._welcome(URL, environment, "secret")
    assert "The bridge is ready." in text
    assert "-H 'Authorization: Bearer YOUR_KEY'" in text


def test_without_keys_the_example_has_no_key(answers: responses.RequestsMock) -> None:
    answers.get(f"{URL}/v1/models", json=MODELS)
    text = demo._welcome(URL, {"BRIDGE_ALLOW_ANONYMOUS": "yes"}, "secret")
    assert "Authorization" not in text
    assert '"model": "ada"' in text


@pytest.mark.parametrize(("setting", "shown"), [("agents", True), ("all", True), ("off", False), ("", False)])
def test_the_address_for_letta_s_programs_is_shown_if_they_may_use_it(setting: str, shown: bool) -> None:
    text = demo._welcome(URL, {"BRIDGE_API_KEYS": "k" * 20, "BRIDGE_LETTA_API": setting}, "secret")
    assert (f"{URL}/letta " in text) == shown
