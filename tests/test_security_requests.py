"""Tests that a request can make the service talk to its Letta server only, and never causes a fault of the service."""

from __future__ import annotations

import gc
import json
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import hypothesis
import pytest
import schemathesis
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from app import create_app
from bridge.config import read_settings
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from tests.actors import Chat
from tests.described import DESCRIPTION
from tests.fakes import FakeGateway
from tests.letta_server import LettaServerStub
from tests.sse_checker import check_error
from tests.waiting import turns_have_ended, until

pytestmark = [pytest.mark.servers, pytest.mark.strict]

# Of Letta's own API, those that the bridge answers itself.
OPERATIONS = [
    (verb, path)
    for path, item in DESCRIPTION["paths"].items()
    for verb in item
    if not path.startswith("/letta/") or path.endswith(("{agent_id}/messages", "{agent_id}/messages/stream"))
]


@pytest.mark.parametrize(("verb", "path"), OPERATIONS)
def test_no_valid_or_invalid_request_causes_a_server_error(
    environment: dict[str, str], letta: FakeGateway, verb: str, path: str
) -> None:
    """Sends requests that follow the OpenAPI description, and requests that break it in schemathesis' ways."""
    app = create_app(read_settings({**environment, "BRIDGE_LETTA_API": "all"}), letta)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=schemathesis.Config())

    @hypothesis.settings(
        max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
    )
    @hypothesis.given(
        case=schema[path][verb.upper()].as_strategy(generation_mode=GenerationMode.POSITIVE)
        | schema[path][verb.upper()].as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def ask(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=[not_a_server_error])

    ask()


@contextmanager
def bridge_client(letta: LettaServerStub, environment: Mapping[str, str]) -> Iterator[FlaskClient]:
    """Yields a client of the service, which calls that server over HTTP."""
    made = read_settings({**environment, "LETTA_BASE_URL": letta.url})
    connection = Connection(made)
    try:
        yield create_app(made, LettaServer(made, connection)).test_client()
    finally:
        until(turns_have_ended)  # a reply may arrive before its turn has closed the connection
        connection.close()
        with warnings.catch_warnings():
            # Closes what the HTTP libraries left in reference cycles now, not during another test.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


# --- addresses in requests --------------------------------------------------------------------------------


@pytest.fixture
def trap() -> Iterator[socket.socket]:
    """Listens on a port to which the service must not connect."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.02)
        yield listening


def was_called(trap: socket.socket) -> bool:
    try:
        connection, _ = trap.accept()
    except TimeoutError:
        return False
    connection.close()
    return True


ADDRESSES = [
    "http://{trap}/x",
    "HTTP://{trap}/x",
    "//{trap}/x",
    "gopher://{trap}/_GET",
    "file:///etc/passwd",
    "http://169.254.169.254/latest/meta-data/",
]


def naming(address: str) -> list[tuple[str, dict[str, Any]]]:
    """Returns requests, by their paths, with the address in every place where it could be followed."""
    return [
        *(("/v1/chat/completions", body) for body in chat_requests_naming(address)),
        *(("/v1/responses", body) for body in responses_requests_naming(address)),
    ]


def responses_requests_naming(address: str) -> list[dict[str, Any]]:
    parts = [{"type": "input_image", "image_url": address}]
    form = {"type": "json_schema", "name": "x", "schema": {"$ref": address}}
    hosted = [{"type": "mcp", "server_label": "x", "server_url": address}, {"type": "web_search", "url": address}]
    asked = {"model": "Ada", "input": address}
    return [
        {"model": "Ada", "input": [{"role": "user", "content": parts}]},
        {"model": "Ada", "input": [{"type": "function_call_output", "call_id": "call_1", "output": parts}]},
        {"model": "Ada", "input": [{"role": "user", "content": [{"type": "input_file", "file_url": address}]}]},
        {"model": address, "input": address, "instructions": address},
        {**asked, "metadata": {"url": address}, "user": address, "conversation": address, "prompt_cache_key": address},
        {**asked, "previous_response_id": address},
        {**asked, "tools": hosted},
        {**asked, "text": {"format": form}},
    ]


def chat_requests_naming(address: str) -> list[dict[str, Any]]:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": address}}]}
    text: dict[str, Any] = {"role": "user", "content": address}
    tool = {
        "name": "read",
        "description": address,
        "parameters": {"type": "object", "$schema": address, "properties": {"x": {"$ref": address}}},
    }
    return [
        {"model": "Ada", "messages": [picture]},
        {"model": address, "messages": [text]},
        {"model": "Ada", "messages": [text], "metadata": {"url": address}, "user": address},
        {"model": "Ada", "messages": [text], "tools": [{"type": "function", "function": tool}]},
        {
            "model": "Ada",
            "messages": [text],
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": address}}},
        },
    ]


@pytest.mark.parametrize("images", ["0", "1"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_of_a_request_is_ever_fetched(
    environment: dict[str, str], trap: socket.socket, address: str, images: str
) -> None:
    host = "{}:{}".format(*trap.getsockname())
    with LettaServerStub(["ok"]) as letta, bridge_client(letta, {**environment, "BRIDGE_IMAGE_URLS": images}) as client:
        for path, body in naming(address.format(trap=host)):
            headers = {"Host": host, "X-Forwarded-Host": host, "Referer": f"http://{host}/", "Origin": f"http://{host}"}
            assert client.post(path, json=body, headers=headers).status_code != 500
    assert not was_called(trap)


@pytest.mark.parametrize("verb", ["GET", "POST"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_redirects_of_letta_are_not_followed(
    environment: dict[str, str], trap: socket.socket, verb: str, status: int
) -> None:
    host = "{}:{}".format(*trap.getsockname())
    with LettaServerStub() as letta:
        letta.redirect = (verb, status, f"http://{host}/elsewhere")
        client = create_app(
            read_settings({**environment, "LETTA_BASE_URL": letta.url, "LETTA_API_KEY": "canary"})
        ).test_client()
        reply = client.post(
            "/v1/chat/completions", json={"model": "Ada", "messages": [{"role": "user", "content": "x"}]}
        )
    assert reply.status_code == 502
    assert host not in reply.text
    assert not was_called(trap)


# --- JSON -------------------------------------------------------------------------------------------------


@pytest.mark.fault("bodies too large, too deep, or no JSON")
@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "Ada", "model": "Bob", "messages": [{"role": "user", "content": "x"}]}',
        b'{"model": "Ada", "messages": [{"role": "user", "content": "x", "content": "y"}]}',
        b'{"model": "Ada", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"model": "Ada", "messages": [{"role": "user", "content": "x"}], "temperature": -Infinity}',
        b'{"model": "Ada", "messages": [{"role": "user", "content": "x"}], "temperature": 1e400}',
        b'{"model": "Ada", "messages": [{"role": "user", "content": "x"}], "seed": ' + b"9" * 5000 + b"}",
        b"\xff\xfe{\x00}\x00",
        b'{"model": "Ada"} {"model": "Bob"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_ambiguous_json_is_refused(chat: Chat, letta: FakeGateway, body: bytes) -> None:
    reply = chat.post(body)
    assert reply.status == 400
    assert letta.prompts == []


@pytest.mark.fault("bodies too large, too deep, or no JSON")
@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_large_body_is_refused_before_it_is_read_completely(client: FlaskClient, app: Flask, encoding: str) -> None:
    app.config["MAX_CONTENT_LENGTH"] = 1000
    response = client.post(
        "/v1/chat/completions",
        data=b"x" * 2000,
        headers={"Content-Type": "application/json", "Content-Encoding": encoding},
    )
    assert response.status_code == 413
    check_error(response.json or {})


# --- hostile and malformed answers of Letta ---------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>\"'>{{7*7}}\x1b[2J\r\nX-Evil: 1\u202e"


@pytest.mark.parametrize("path", ["/v1/models", "/metrics"])
def test_hostile_names_from_letta_are_escaped_everywhere(
    environment: dict[str, str], letta: FakeGateway, path: str
) -> None:
    letta.has_agent(HOSTILE)
    client = create_app(
        read_settings({**environment, "BRIDGE_ADMIN_PASSWORD": "canary-of-the-admin"}), letta
    ).test_client()
    reply = client.get(path, auth=("admin", "canary-of-the-admin"))
    assert reply.status_code == 200
    assert "X-Evil" not in reply.headers
    assert "<script>alert" not in reply.text or reply.mimetype == "application/json"
    assert "\x1b" not in reply.text or reply.mimetype == "text/html"
    if reply.mimetype == "application/json":
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        json.loads(reply.text)


def test_an_agent_with_a_hostile_name_can_be_talked_to(chat: Chat, letta: FakeGateway) -> None:
    letta.has_agent(HOSTILE)
    letta.will_say("Hello")
    assert chat.ask(model=HOSTILE).text == "Hello"


def test_answers_of_a_server_that_is_not_letta_are_handled(environment: dict[str, str]) -> None:
    """The server sends lists instead of objects, numbers instead of texts, and null."""
    with LettaServerStub() as stub, bridge_client(stub, environment) as client:
        objects = {"id": 7, "name": None}, [{"id": None}], [{"id": {}, "name": []}]
        for answer in ([], {}, None, 7, "x", [None], [[]], *objects):
            stub.answer = answer
            reply = client.get("/v1/models")
            assert reply.status_code in (200, 502)
            turn = client.post(
                "/v1/chat/completions", json={"model": "Ada", "messages": [{"role": "user", "content": "x"}]}
            )
            assert turn.status_code in (404, 502)
