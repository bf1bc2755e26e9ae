"""Typical mistakes of people, and what they are told: what is wrong, where, and what to do."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import responses
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app import create_app
from bridge.config import read_settings
from bridge.errors import SettingsError
from tests.fakes import FakeGateway
from tests.sse_checker import check_error

KEY = "a-long-enough-key"
BEARER = {"Authorization": f"Bearer {KEY}"}
DIGEST = "ab" * 32
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
USER = {"role": "user", "content": "Hello"}
BODY = {"model": "my-agent", "messages": [USER]}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ALLOW_ANONYMOUS": "", "BRIDGE_API_KEYS": KEY}


@pytest.fixture
def letta() -> FakeGateway:
    fake = FakeGateway()
    fake.has_agent("my-agent")
    fake.has_agent("other-agent")
    return fake


# --- mistakes in a client's settings and in its requests --------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """A request, and words of the answer. `sent`: how it differs from a right one."""

    status: int
    words: tuple[str, ...]
    path: str = CHAT
    method: str = "POST"
    headers: dict[str, str] | None = None
    sent: Any = None
    data: Any = None


def function(name: Any = "read", **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, **fields}}


def chat(*words: str, status: int = 400, **fields: Any) -> Mistake:
    return Mistake(status, words, sent={**BODY, **fields})


def lost(path: str, *words: str) -> Mistake:
    return Mistake(404, words, path=path)


ENDS_IN_V1 = "the client's base URL must end in `/v1`, as in http://localhost:8080/v1"

MISTAKES = {
    "a wrong model name": chat("no agent", "'MyAgent'; did you mean 'my-agent'?", status=404, model="MyAgent"),
    "a wrong model name that is like no other": chat(
        "no agent", "'gpt-4o'", "Your agents: 'my-agent', 'other-agent'", status=404, model="gpt-4o"
    ),
    "a wrong model name for /v1/responses": Mistake(
        404, ("no agent", "did you mean 'my-agent'?"), path=RESPONSES, sent={"model": "MyAgent", "input": "Hello"}
    ),
    "no model": chat("`model` must be the name or id of an agent", "GET /v1/models", model=None),
    "a wrong key": Mistake(
        401, ("not one of this service", "one that its operator gave you"), headers={"Authorization": "Bearer canary"}
    ),
    "the entry of a key": Mistake(
        401, ("an entry of BRIDGE_API_KEYS", "the key itself"), headers={"Authorization": f"Bearer roo:{'0a' * 32}"}
    ),
    "no key": Mistake(401, ("No API key came", "Set the client's API key"), headers={}),
    "an empty key": Mistake(401, ("No API key came",), headers={"Authorization": "Bearer "}),
    "the stand-in for a key": Mistake(401, ("No API key came",), headers={"Authorization": "Bearer none"}),
    "a key in the wrong header": Mistake(
        401, ("in the header `X-Api-Key`", "`Authorization: Bearer <key>`"), headers={"X-Api-Key": KEY}
    ),
    "a key without Bearer": Mistake(
        401, ("does not begin with `Bearer`", "`Authorization: Bearer <key>`"), headers={"Authorization": KEY}
    ),
    "a base URL without /v1": lost("/chat/completions", "`/v1` is missing", ENDS_IN_V1),
    "a base URL without /v1, for models": Mistake(404, ("`/v1` is missing", ENDS_IN_V1), path="/models", method="GET"),
    "a base URL with /v1 twice": lost("/v1/v1/chat/completions", "`/v1` is there twice", "take it off the end"),
    "a base URL with a whole route": lost("/v1/chat/completions/chat/completions", "must end in `/v1`"),
    "a provider that is Ollama": lost("/api/chat", "This is Ollama's API", 'Choose "OpenAI compatible"'),
    "a base URL below /api": lost("/api/v1/chat/completions", "too much before `/v1`", "http://localhost:8080/v1"),
    "GET instead of POST": Mistake(405, ("takes POST, not GET",), method="GET"),
    "a form instead of JSON": Mistake(
        400, ("is a form (application/x-www-form-urlencoded)", "Content-Type: application/json"), data={"model": "x"}
    ),
    "a text instead of JSON": Mistake(400, ("not valid JSON", "line 1 column 1"), data="Hello"),
    "no body": Mistake(400, ("body is empty", "send a JSON object with `model`"), data=""),
    "a flag that is a text": chat("`stream` must be true or false", stream="yes"),
    "no messages": chat("`messages` must be an array with at least one message", messages=[]),
    "messages of the other API": Mistake(
        400, ("`input` must be", "`messages` is for /v1/chat/completions"), path=RESPONSES, sent=BODY
    ),
    "a result without the id of its call": chat(
        "`messages[1].tool_call_id` must be the id of the tool call", messages=[USER, {"role": "tool", "content": "x"}]
    ),
    "a tool without a name": chat("`tools[1].function.name` must be a string", tools=[function(), function(None)]),
    "a tool in the form of the other API": chat(
        "The tool 'read' is refused: `tools[0].function` must be an object with `name`",
        "as in the Responses API",
        tools=[{"type": "function", "name": "read"}],
    ),
    "two tools of one name": chat(
        "`tools[1].function.name` is 'read', which an earlier tool has", "Rename one", tools=[function(), function()]
    ),
    "a tool's name that is too long": chat("`tools[0].function.name`", "1 to 128 letters", tools=[function("r" * 129)]),
    "a tool's name with a blank": chat(
        "`tools[0].function.name` is 'read file'", "letters", tools=[function("read file")]
    ),
    "a tool that OpenAI runs": chat(
        "`tools[0].type` is 'web_search'", 'only tools of type "function"', tools=[{"type": "web_search"}]
    ),
    "a schema with a misspelt type": chat(
        "The tool 'read'", "parameters.type` must be one of array", tools=[function(parameters={"type": "strin"})]
    ),
    "the choice of a tool that is not there": chat(
        "`tool_choice` names 'write', which is not among `tools`",
        tools=[function()],
        tool_choice=function("write"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_client_is_told_what_is_wrong_and_what_to_do(client: FlaskClient, letta: FakeGateway, mistake: str) -> None:
    made = MISTAKES[mistake]
    content = {"data": made.data} if made.data is not None else {"json": BODY if made.sent is None else made.sent}
    headers = BEARER if made.headers is None else made.headers
    reply = client.open(made.path, method=made.method, headers=headers, **content)
    assert reply.status_code == made.status
    assert_told(reply, *made.words)
    assert letta.prompts == []


def assert_told(reply: TestResponse, *words: str) -> None:
    message = check_error(reply.json or {})["message"]
    assert [word for word in words if word not in message] == [], message
    assert "canary" not in message


def test_a_slash_at_the_end_does_no_harm(client: FlaskClient, letta: FakeGateway) -> None:
    letta.will_say("Hello")
    assert client.post(f"{CHAT}/", json=BODY, headers=BEARER).status_code == 200
    assert client.get("/v1/models/", headers=BEARER).status_code == 200


def test_the_result_of_an_unknown_call_reaches_the_agent_as_what_it_is(client: FlaskClient, letta: FakeGateway) -> None:
    """Nothing is wrong with it: clients shorten transcripts, and the call may have been cut off."""
    letta.will_say("Thanks")
    result = {"role": "tool", "tool_call_id": "call_gone", "content": "12 degrees"}
    assert client.post(CHAT, json={**BODY, "messages": [USER, result]}, headers=BEARER).status_code == 200
    assert "12 degrees" in str(letta.prompts)


def test_the_admin_page_without_a_password_says_how_to_set_one(client: FlaskClient) -> None:
    reply = client.get("/admin/")
    assert reply.status_code == 403
    assert "The admin page is off" in reply.text
    assert "Set <code>BRIDGE_ADMIN_PASSWORD</code> in the environment" in reply.text


# --- mistakes in the bridge's settings --------------------------------------------------------------------

SETTINGS: dict[str, tuple[dict[str, str], str]] = {
    "no address": ({"LETTA_BASE_URL": ""}, "LETTA_BASE_URL is not set: Address of the Letta server, e.g."),
    "an address without http": (
        {"LETTA_BASE_URL": "localhost:8283"},
        "LETTA_BASE_URL: 'localhost:8283' must be a URL such as http://localhost:8283",
    ),
    "no keys": ({"BRIDGE_API_KEYS": ""}, "BRIDGE_API_KEYS is not set: anybody who reaches the port could talk to"),
    "a misspelt setting": (
        {"BRIDGE_API_KEYS": "", "BRIDGE_API_KEY": KEY},
        "BRIDGE_API_KEY is not a setting and is ignored; did you mean BRIDGE_API_KEYS?",
    ),
    "a key that is too short": (
        {"BRIDGE_API_KEYS": f"{KEY},canary"},
        "BRIDGE_API_KEYS: key 2 is shorter than 8 characters: the command `keys new NAME` makes a key",
    ),
    "a name with a plain key": (
        {"BRIDGE_API_KEYS": "roo:canary-secret"},
        "BRIDGE_API_KEYS: key 1 looks like a name and a plain key: after `name:` comes the SHA-256 of the key",
    ),
    "a hash that was not copied whole": (
        {"BRIDGE_API_KEYS": f"roo:{DIGEST[1:]}"},
        "BRIDGE_API_KEYS: key 1 (roo) has 63 hex digits after its name, and a SHA-256 has 64: copy the whole hash",
    ),
    "a prefix without a slash": (
        {"BRIDGE_URL_PREFIX": "bridge"},
        "BRIDGE_URL_PREFIX: 'bridge' must be a path such as /bridge",
    ),
    "a port that is a text": ({"PORT": "http"}, "PORT: 'http' must be a whole number from 0 to 65535"),
    "a method that does not exist": ({"BRIDGE_METHOD": "best"}, "BRIDGE_METHOD: 'best' must be one of auto, "),
}


@pytest.mark.parametrize("mistake", SETTINGS)
def test_a_wrong_setting_is_named_before_the_service_starts(environment: dict[str, str], mistake: str) -> None:
    variables, words = SETTINGS[mistake]
    with pytest.raises(SettingsError) as caught:
        read_settings({**environment, **variables})
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


# --- a Letta that is not there ----------------------------------------------------------------------------


@pytest.fixture
def closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def app_at(environment: dict[str, str]) -> Iterator[Callable[[str], Flask]]:
    """Makes the service in front of the Letta at an address."""
    made: list[Flask] = []

    def make(url: str) -> Flask:
        made.append(create_app(read_settings({**environment, "LETTA_BASE_URL": url, "LETTA_API_KEY": "canary"})))
        return made[-1]

    yield make
    for app in made:
        app.extensions["parts"].recorder.stop()


def test_a_letta_that_is_down_is_named_with_its_address(app_at: Callable[[str], Flask], closed_port: str) -> None:
    client = app_at(closed_port).test_client()
    for reply in (client.post(CHAT, json=BODY, headers=BEARER), client.get("/v1/models", headers=BEARER)):
        assert reply.status_code == 502
        assert_told(
            reply, f"The Letta server at {closed_port} can't be reached", "Start Letta, or correct LETTA_BASE_URL"
        )


@responses.activate
def test_a_wrong_password_of_letta_is_named_with_its_setting(app_at: Callable[[str], Flask]) -> None:
    responses.get("http://letta.test/v1/agents/", status=401, json={"detail": "Unauthorized"})
    reply = app_at("http://letta.test").test_client().post(CHAT, json=BODY, headers=BEARER)
    assert reply.status_code == 502
    assert_told(reply, "The Letta server refused the password", "Set LETTA_API_KEY to the server's password")
