"""What stands around the API: its page and description, packed bodies, browsers, other methods."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.fakes import FakeGateway
from tests.sse_checker import check_error

BODY = json.dumps({"model": "Ada", "messages": [{"role": "user", "content": "Hello"}]}).encode()
PACKED = {"gzip": gzip.compress(BODY), "deflate": zlib.compress(BODY)}


def post(client: FlaskClient, data: bytes, encoding: str) -> TestResponse:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    return client.post("/v1/chat/completions", data=data, headers=headers)


def test_the_root_says_what_this_is_and_where_to_go(client: FlaskClient) -> None:
    page = client.get("/").get_data(as_text=True)
    for words in ("/v1/chat/completions", "/openapi.json", "/admin/"):
        assert words in page
    assert not re.search(r"https?://", page)


def test_the_description_names_exactly_the_routes_of_the_api(client: FlaskClient, app: Flask) -> None:
    described = client.get("/openapi.json").json or {}
    routes = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule) for rule in app.url_map.iter_rules()}
    assert set(described["paths"]) == {route for route in routes if route.startswith("/v1")}
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described)))
    assert references == set(described["components"]["schemas"])


@pytest.mark.parametrize("encoding", PACKED)
def test_a_packed_body_is_unpacked(client: FlaskClient, letta: FakeGateway, encoding: str) -> None:
    letta.will_say("Hi")
    assert post(client, PACKED[encoding], encoding).status_code == 200


@pytest.mark.parametrize(
    ("data", "encoding", "status"),
    [
        (b"not packed", "gzip", 400),
        (PACKED["gzip"][:-9], "gzip", 400),
        (BODY, "br", 400),
        (gzip.compress(b"x" * 30_000_000), "gzip", 413),
    ],
    ids=["not packed", "cut short", "of another kind", "too large"],
)
def test_a_body_that_cannot_be_unpacked_is_refused(
    client: FlaskClient, data: bytes, encoding: str, status: int
) -> None:
    response = post(client, data, encoding)
    assert response.status_code == status
    check_error(response.json or {})


@pytest.mark.parametrize("path", ["/v1/models/", "/healthz/", "/v1/chat/completions/"])
def test_a_slash_at_the_end_does_not_matter(client: FlaskClient, letta: FakeGateway, path: str) -> None:
    letta.will_say("Hi")
    headers = {"Content-Type": "application/json"}
    response = client.post(path, data=BODY, headers=headers) if "chat" in path else client.get(path)
    assert response.status_code == 200


def test_head_is_get_without_a_body(client: FlaskClient) -> None:
    response = client.head("/v1/models")
    assert response.status_code == 200
    assert response.data == b""


class TestBrowsers:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        keys = {"BRIDGE_CORS_ORIGINS": "https://chat.example", "BRIDGE_API_KEYS": "a-long-enough-key"}
        return {**environment, **keys}

    @staticmethod
    def ask_first(client: FlaskClient, origin: str) -> TestResponse:
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        return client.options("/v1/chat/completions", headers=headers)

    def test_an_allowed_origin_may_ask_without_a_key_whether_it_may(self, client: FlaskClient) -> None:
        response = self.ask_first(client, "https://chat.example")
        assert response.status_code == 204
        assert response.headers["Access-Control-Allow-Origin"] == "https://chat.example"
        assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in response.headers

    def test_a_page_may_send_what_openais_own_client_sends(self, client: FlaskClient) -> None:
        sends = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,x-stainless-runtime"
        asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": sends}
        response = client.options("/v1/chat/completions", headers={"Origin": "https://chat.example", **asks})
        assert response.headers["Access-Control-Allow-Headers"] == sends

    def test_another_origin_is_not_allowed(self, client: FlaskClient) -> None:
        response = self.ask_first(client, "https://evil.example")
        assert "Access-Control-Allow-Origin" not in response.headers
        assert "Origin" in response.headers["Vary"]

    def test_a_refusal_can_be_read_by_the_page_too(self, client: FlaskClient) -> None:
        response = client.get("/v1/models", headers={"Origin": "https://chat.example"})
        assert response.status_code == 401
        assert response.headers["Access-Control-Allow-Origin"] == "https://chat.example"

    def test_other_pages_of_the_service_are_not_opened(self, client: FlaskClient) -> None:
        response: Any = client.get("/", headers={"Origin": "https://chat.example"})
        assert "Access-Control-Allow-Origin" not in response.headers


def test_without_the_setting_no_origin_is_allowed(client: FlaskClient) -> None:
    response = client.get("/v1/models", headers={"Origin": "https://chat.example"})
    assert "Access-Control-Allow-Origin" not in response.headers
