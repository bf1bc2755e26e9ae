"""Tests that no secret is in any output of the service: replies, logs, metrics, pages, files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from testbed.service import Service
from tests.letta_server import AGENT_ID, LettaServerStub
from tests.services import environment
from tests.waiting import SOON

pytestmark = [pytest.mark.servers, pytest.mark.strict]

PLAIN, HASHED = "canary-of-the-plain-key", "canary-of-the-hashed-key"
LETTA, ADMIN, METRICS = "canary-of-letta", "canary-of-the-admin", "canary-of-the-metrics"
USER, AGENT, REFUSAL = "canary-of-the-user", "canary-of-the-agent", "canary-in-lettas-refusal"
HASH = hashlib.sha256(HASHED.encode()).hexdigest()
SECRETS = [PLAIN, HASHED, HASH, LETTA, ADMIN, METRICS]


@pytest.fixture(scope="module")
def letta() -> Iterator[LettaServerStub]:
    with LettaServerStub([AGENT]) as server:
        yield server


@pytest.fixture(scope="module")
def bridge(letta: LettaServerStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("canaries")
    more = {
        "LETTA_API_KEY": LETTA,
        "BRIDGE_API_KEYS": f"{PLAIN}, second:{HASH}:Ada",
        "BRIDGE_ADMIN_PASSWORD": ADMIN,
        "BRIDGE_METRICS_TOKEN": METRICS,
        "BRIDGE_LOG_LEVEL": "debug",
        "BRIDGE_KEEP_TEXT": "0",
    }
    with Service(environment(letta.url, folder, WEB_CONCURRENCY="1", **more), folder / "log") as service:
        yield service


def log_of(bridge: Service) -> str:
    return Path(bridge.environment["TMPDIR"], "log").read_text()


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def asking(**fields: Any) -> dict[str, Any]:
    return {"json": {"model": "Ada", "messages": [{"role": "user", "content": USER}], **fields}}


def everything(bridge: Service, letta: LettaServerStub) -> Iterator[requests.Response]:
    """Sends valid and invalid requests to every route."""
    basic = {"Authorization": "Basic " + base64.b64encode(f"admin:{ADMIN}".encode()).decode()}
    all_headers: list[dict[str, str]] = [{}, *map(bearer, [*SECRETS, "wrong-key-of-a-stranger"]), basic]
    for path in (
        *("/", "/v1/models", "/v1/models/Ada", "/v1/models/Nobody", "/healthz", "/readyz", "/metrics", "/openapi.json"),
        *("/admin/", "/admin/static/admin.css", f"/v1/models?api_key={PLAIN}&key={HASHED}"),
    ):
        for headers in all_headers:
            yield requests.get(bridge.url + path, headers=headers, timeout=SOON)
    chat = f"{bridge.url}/v1/chat/completions"
    responses = f"{bridge.url}/v1/responses"
    for headers in all_headers:
        asked = {"model": "Ada", "input": USER}
        yield requests.post(responses, headers=headers, timeout=SOON, json=asked)
        yield requests.get(f"{responses}/resp_1", headers=headers, timeout=SOON)
        for stream in (False, True):
            yield requests.post(chat, headers=headers, timeout=SOON, **asking(stream=stream))
        yield requests.post(chat, headers=headers, timeout=SOON, data="{")
    refusals = (401, REFUSAL), (500, f"{REFUSAL} {LETTA} sk-canary-of-a-provider"), (404, REFUSAL), (200, REFUSAL)
    for refusal in refusals:
        letta.refusal = refusal
        yield requests.post(chat, headers=bearer(PLAIN), timeout=SOON, **asking())
    letta.refusal = None


@pytest.fixture(scope="module")
def replies(bridge: Service, letta: LettaServerStub) -> list[requests.Response]:
    return list(everything(bridge, letta))


def test_the_replies_include_every_kind(replies: list[requests.Response]) -> None:
    assert {200, 400, 401, 404, 502} <= {reply.status_code for reply in replies}
    assert any(AGENT in reply.text for reply in replies)


@pytest.mark.parametrize("secret", SECRETS)
def test_no_reply_contains_a_secret(replies: list[requests.Response], secret: str) -> None:
    leaking = [reply.url for reply in replies if secret in reply.text + str(reply.headers)]
    assert leaking == []


@pytest.mark.parametrize(
    "secret", [*SECRETS, USER, AGENT, "sk-canary-of-a-provider", base64.b64encode(f"admin:{ADMIN}".encode()).decode()]
)
@pytest.mark.usefixtures("replies")
def test_the_log_contains_no_secret_and_no_text_of_users_or_agents(bridge: Service, secret: str) -> None:
    assert secret not in log_of(bridge)


@pytest.mark.usefixtures("replies")
def test_lettas_refusal_is_in_the_log_but_in_no_reply(bridge: Service, replies: list[requests.Response]) -> None:
    assert REFUSAL in log_of(bridge)
    assert not [reply.url for reply in replies if REFUSAL in reply.text]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.usefixtures("replies")
def test_no_file_of_the_service_contains_a_secret(bridge: Service, secret: str) -> None:
    folder = Path(bridge.environment["BRIDGE_DATA_DIR"])
    leaking = [file.name for file in folder.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]
    assert leaking == []


@pytest.mark.usefixtures("replies")
def test_letta_gets_only_its_own_secret(letta: LettaServerStub) -> None:
    received = str(letta.asked)
    assert f"Bearer {LETTA}" in received
    assert AGENT_ID in received
    assert not [secret for secret in SECRETS if secret != LETTA and secret in received]
