from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import create_app
from bridge.config import Settings
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.trace import Trace, set_current_trace
from bridge.turn import Stopped, Text
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.letta_http import LettaHttp
from tests.log_lines import lines, whole_log

AGENTS = ("GET", "/v1/agents/")
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TIMING = re.compile(r"bridge;dur=[\d.]+, letta;dur=[\d.]+, wait;dur=[\d.]+, total;dur=[\d.]+")


@pytest.fixture
def http() -> Iterator[LettaHttp]:
    with LettaHttp() as made:
        yield made


@pytest.fixture
def over_http(settings: Settings, http: LettaHttp) -> FlaskClient:
    """Returns a client of the service in front of a Letta that is asked over HTTP."""
    http.on(*AGENTS, [])
    return create_app(settings, LettaServer(settings, Connection(settings, http.transport))).test_client()


def test_letta_gets_the_name_of_the_request_and_of_its_trace(over_http: FlaskClient, http: LettaHttp) -> None:
    reply = over_http.get("/v1/models", headers={"X-Request-Id": "req-1", "traceparent": PARENT})
    (asked,) = http.requests
    assert reply.headers["X-Request-Id"] == asked.headers["X-Request-Id"] == "req-1"
    assert asked.headers["traceparent"].startswith(PARENT[:36])
    assert asked.headers["traceparent"] != PARENT


def test_a_request_without_a_name_gets_one_and_letta_gets_it_too(over_http: FlaskClient, http: LettaHttp) -> None:
    names = [over_http.get("/v1/models/Nobody").headers["X-Request-Id"] for _ in range(2)]
    assert names == [asked.headers["X-Request-Id"] for asked in http.requests]
    assert names[0] != names[1]
    assert "traceparent" not in http.requests[0].headers


def test_a_reply_says_how_many_calls_and_how_much_time_it_took(over_http: FlaskClient) -> None:
    reply = over_http.get("/v1/models")
    assert reply.headers["X-Bridge-Letta-Calls"] == "1"
    assert TIMING.fullmatch(reply.headers["Server-Timing"])


def test_replies_below_lettas_path_say_it_too(over_http: FlaskClient) -> None:
    assert over_http.get("/letta/v1/nowhere").headers["X-Bridge-Letta-Calls"] == "0"
    assert "X-Bridge-Letta-Calls" not in over_http.get("/letta").headers


@pytest.mark.parametrize("streamed", [False, True])
def test_the_reply_of_a_turn_says_it_too(chat: Chat, letta: FakeGateway, streamed: bool) -> None:
    letta.will(Text("Hello"), Stopped("end_turn"))
    reply = chat.ask(stream=streamed, headers={"X-Request-Id": "turn-1"})
    assert (reply.headers["X-Request-Id"], reply.headers["X-Bridge-Letta-Calls"]) == ("turn-1", "0")
    assert TIMING.fullmatch(reply.headers["Server-Timing"])


def test_a_refusal_has_a_name_too(client: FlaskClient) -> None:
    for reply in (
        client.get("/nowhere"),
        client.post("/v1/chat/completions", data="{", content_type="application/json"),
    ):
        assert len(reply.headers["X-Request-Id"]) == 32


def test_every_call_is_reported_to_the_observer(settings: Settings, http: LettaHttp) -> None:
    seen: list[tuple[str, float]] = []
    trace = Trace()
    set_current_trace(trace)
    connection = Connection(settings, http.transport, lambda *call: seen.append(call))
    http.on("GET", "/v1/agents/agent-1", {"id": "agent-1"})
    connection.call("GET", "/v1/agents/agent-1")
    assert [call for call, _ in seen] == list(trace.calls) == ["GET /v1/agents/{id}"]
    assert seen[0][1] > 0


def test_a_header_that_is_not_a_name_is_not_repeated(client: FlaskClient) -> None:
    headers: Any = {"X-Request-Id": "x" * 5000}
    assert len(client.get("/healthz", headers=headers).headers["X-Request-Id"]) == 32


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_a_request_that_is_not_a_turn_has_a_line_without_its_query(
    client: FlaskClient, log: pytest.LogCaptureFixture
) -> None:
    client.get("/v1/models?api_key=canary-1")
    client.post("/v1/chat/completions?key=canary-2", data="{", content_type="application/json")
    client.get("/" + "x" * 5000)
    found = lines(log, "request")
    assert [(line["method"], line["status"]) for line in found] == [("GET", 200), ("POST", 400), ("GET", 404)]
    assert all(len(line["path"]) <= 200 for line in found)
    assert "canary" not in whole_log(log)


def test_requests_of_monitors_are_not_logged(client: FlaskClient, log: pytest.LogCaptureFixture) -> None:
    client.get("/healthz")
    client.get("/readyz")
    assert lines(log, "request") == []
