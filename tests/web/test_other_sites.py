"""A service without keys, which web pages on its user's machine could otherwise use."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.fakes import FakeGateway
from tests.sse_checker import check_error

JSON = {"Content-Type": "application/json"}
KEY = "a-long-enough-key"


def post(client: FlaskClient, headers: dict[str, str]) -> TestResponse:
    body = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}]}
    return client.post("/v1/chat/completions", data=json.dumps(body).encode(), headers=headers)


@pytest.mark.parametrize(
    "sent", [None, "text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_without_keys_a_body_that_is_not_declared_as_json_is_refused(
    client: FlaskClient, letta: FakeGateway, sent: str | None
) -> None:
    response = post(client, {} if sent is None else {"Content-Type": sent})
    error = check_error(response.json or {})
    assert (response.status_code, error["code"]) == (415, "unsupported_media_type")
    assert "-H 'Content-Type: application/json'" in error["message"]
    assert letta.calls == []


@pytest.mark.parametrize("sent", ["application/json", "application/json; charset=utf-8", "application/vnd.api+json"])
def test_without_keys_json_is_answered(client: FlaskClient, sent: str) -> None:
    assert post(client, {"Content-Type": sent}).status_code == 200


FOREIGN = [
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", FOREIGN)
@pytest.mark.parametrize("sent", ["text/plain", "application/json"])
def test_without_keys_pages_of_other_sites_are_refused(
    client: FlaskClient, letta: FakeGateway, headers: dict[str, str], sent: str
) -> None:
    response = post(client, {"Content-Type": sent, **headers})
    error = check_error(response.json or {})
    assert (response.status_code, error["code"]) == (403, "origin_not_allowed")
    assert "BRIDGE_CORS_ORIGINS" in error["message"]
    assert letta.calls == []


@pytest.mark.parametrize(
    "headers", [{}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://localhost"}]
)
def test_without_keys_programs_and_pages_of_this_host_are_answered(
    client: FlaskClient, headers: dict[str, str]
) -> None:
    assert post(client, {**JSON, **headers}).status_code == 200


class TestNamedOrigins:
    @pytest.fixture(params=["https://chat.example", "*"])
    def environment(self, environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
        return {**environment, "BRIDGE_CORS_ORIGINS": request.param}

    def test_a_page_of_a_named_origin_is_answered_without_keys(self, client: FlaskClient) -> None:
        headers = {**JSON, "Sec-Fetch-Site": "cross-site", "Origin": "https://chat.example"}
        assert post(client, headers).status_code == 200
        assert post(client, {**headers, "Content-Type": "text/plain"}).status_code == 415


class TestWithKeys:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_API_KEYS": KEY}

    @pytest.mark.parametrize("headers", [{}, *FOREIGN])
    @pytest.mark.parametrize("sent", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; x=y"}])
    def test_with_a_key_neither_origin_nor_content_type_matters(
        self, client: FlaskClient, headers: dict[str, str], sent: dict[str, str]
    ) -> None:
        assert post(client, {**sent, **headers, "Authorization": f"Bearer {KEY}"}).status_code == 200
