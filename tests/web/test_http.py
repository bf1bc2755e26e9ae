"""HTTP around the API: the home page, compressed bodies, CORS, HEAD, trailing slashes."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.fakes import FakeGateway
from tests.sse_checker import check_error

BODY = json.dumps({"model": "Ada", "messages": [{"role": "user", "content": "Hello"}]}).encode()
COMPRESSED = {"gzip": gzip.compress(BODY), "deflate": zlib.compress(BODY)}


def post(client: FlaskClient, data: bytes, encoding: str) -> TestResponse:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    return client.post("/v1/chat/completions", data=data, headers=headers)


def test_the_home_page_links_to_the_api_and_the_admin_page(client: FlaskClient) -> None:
    page = client.get("/").get_data(as_text=True)
    for link in ("/v1/chat/completions", "/letta", "/docs", "/openapi.json", "/admin/"):
        assert link in page
    assert not re.search(r"https?://", page)


def test_no_json_has_a_line_separator_that_json_allows_in_a_string(client: FlaskClient, letta: FakeGateway) -> None:
    name = "A\x85\u2028\u2029B"
    letta.renames_agent(letta.agents_named("Ada")[0].id, name)
    function = {"name": "read", "parameters": {"properties": {name: 3}}}
    question = {"model": name, "messages": [{"role": "user", "content": "Hi"}]}
    replies = [client.get("/v1/models")]
    for fields in ({}, {"stream": True}, {"tools": [{"type": "function", "function": function}]}):
        replies.append(client.post("/v1/chat/completions", json={**question, **fields}))
    for reply in replies:
        text = reply.get_data(as_text=True)
        assert "A\\u0085\\u2028\\u2029B" in text
        assert not re.search("[\x85\u2028\u2029]", text)
    assert [reply.status_code for reply in replies] == [200, 200, 200, 400]


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_compressed_body_is_decompressed(client: FlaskClient, letta: FakeGateway, encoding: str) -> None:
    letta.will_say("Hi")
    assert post(client, COMPRESSED[encoding], encoding).status_code == 200


@pytest.mark.parametrize(
    ("data", "encoding", "status"),
    [
        (b"not compressed", "gzip", 400),
        (COMPRESSED["gzip"][:-9], "gzip", 400),
        (BODY, "br", 400),
        (gzip.compress(b"x" * 30_000_000), "gzip", 413),
    ],
    ids=["not compressed", "cut short", "unknown encoding", "too large"],
)
def test_a_body_that_cannot_be_decompressed_is_refused(
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
    def preflight(client: FlaskClient, origin: str) -> TestResponse:
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        return client.options("/v1/chat/completions", headers=headers)

    def test_a_preflight_request_needs_no_key(self, client: FlaskClient) -> None:
        response = self.preflight(client, "https://chat.example")
        assert response.status_code == 204
        assert response.headers["Access-Control-Allow-Origin"] == "https://chat.example"
        assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        assert "Access-Control-Allow-Credentials" not in response.headers
        assert response.headers["Access-Control-Allow-Methods"] == "GET, POST, DELETE, HEAD, OPTIONS"

    def test_a_page_may_send_the_headers_of_openais_client(self, client: FlaskClient) -> None:
        sends = "authorization,content-type,x-stainless-lang,x-stainless-retry-count,x-stainless-runtime"
        asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": sends}
        response = client.options("/v1/chat/completions", headers={"Origin": "https://chat.example", **asks})
        assert response.headers["Access-Control-Allow-Headers"] == sends

    def test_another_origin_is_not_allowed(self, client: FlaskClient) -> None:
        response = self.preflight(client, "https://evil.example")
        assert "Access-Control-Allow-Origin" not in response.headers
        assert "Origin" in response.headers["Vary"]

    def test_a_page_can_read_a_refusal(self, client: FlaskClient) -> None:
        response = client.get("/v1/models", headers={"Origin": "https://chat.example"})
        assert response.status_code == 401
        assert response.headers["Access-Control-Allow-Origin"] == "https://chat.example"

    def test_only_the_api_allows_other_origins(self, client: FlaskClient) -> None:
        response: Any = client.get("/", headers={"Origin": "https://chat.example"})
        assert "Access-Control-Allow-Origin" not in response.headers


def test_without_the_setting_no_origin_is_allowed(client: FlaskClient) -> None:
    response = client.get("/v1/models", headers={"Origin": "https://chat.example"})
    assert "Access-Control-Allow-Origin" not in response.headers
