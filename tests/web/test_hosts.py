"""Host names of the service, and what proxies say about clients."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.sse_checker import check_error


class TestTrustedHosts:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        named = "Bridge.Example.com, .internal.example, 10.0.0.1:8080, b\u00fccher.example, [fd00::1]"
        return {**environment, "BRIDGE_TRUSTED_HOSTS": named}

    @pytest.mark.parametrize(
        "host",
        [
            "bridge.example.com",
            "bridge.example.com:8080",
            "a.internal.example",
            "internal.example",
            "xn--bcher-kva.example",
            "[fd00::1]:8080",
            "10.0.0.1",
            "localhost",
            "127.0.0.1:8080",
            "[::1]:8080",
        ],
    )
    def test_the_service_answers_to_its_names(self, client: FlaskClient, host: str) -> None:
        assert client.get("/v1/models", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "bridge.example.com.evil.example",
            "xbridge.example.com",
            "xinternal.example",
            "bridge.example.com@evil",
            "[::1",
            "[fd00::2]",
        ],
    )
    @pytest.mark.parametrize("path", ["/v1/models", "/", "/metrics", "/nowhere", "/admin/", "/healthz/x"])
    def test_the_service_does_not_answer_to_other_names(self, client: FlaskClient, host: str, path: str) -> None:
        response = client.get(path, headers={"Host": host})
        assert response.status_code == 400
        assert check_error(response.json or {})["code"] == "unknown_host"
        assert "evil" not in response.text
        assert response.headers["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize("host", ["10.1.2.3:8080", "evil.example", "[::1"])
    @pytest.mark.parametrize("path", ["/healthz", "/readyz"])
    def test_health_is_answered_under_any_name(self, client: FlaskClient, host: str, path: str) -> None:
        response = client.get(path, headers={"Host": host})
        assert response.status_code == 200
        assert response.json is not None
        assert response.json["status"] == "ok"


class TestWithoutKeysOnThisMachine:
    """A web page may lead its own host name to this machine: the browser then sends that name."""

    @pytest.fixture(params=["127.0.0.1", "::1", "localhost", "127.8.0.1"])
    def environment(self, environment: dict[str, str], request: pytest.FixtureRequest) -> dict[str, str]:
        return {**environment, "BRIDGE_HOST": request.param, "BRIDGE_TRUSTED_HOSTS": "named.example"}

    @pytest.mark.parametrize("host", ["localhost:8080", "127.0.0.1:8080", "[::1]:8080", "named.example"])
    def test_local_and_named_hosts_are_answered(self, client: FlaskClient, host: str) -> None:
        assert client.get("/v1/models", headers={"Host": host}).status_code == 200

    @pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/"])
    @pytest.mark.parametrize("named", ["", "named.example"])
    def test_other_hosts_are_told_the_setting(
        self, environment: dict[str, str], request: pytest.FixtureRequest, named: str, path: str
    ) -> None:
        environment["BRIDGE_TRUSTED_HOSTS"] = named
        client: FlaskClient = request.getfixturevalue("client")
        response = client.get(path, headers={"Host": "rebound.example:8080"})
        error = check_error(response.json or {})
        assert (response.status_code, error["code"]) == (400, "unknown_host")
        assert "BRIDGE_TRUSTED_HOSTS" in error["message"]


@pytest.mark.parametrize(
    "variables", [{"BRIDGE_HOST": "0.0.0.0"}, {"BRIDGE_HOST": "127.0.0.1", "BRIDGE_API_KEYS": "a-long-enough-key"}]
)
def test_any_host_is_answered_with_keys_or_beyond_this_machine(
    environment: dict[str, str], variables: dict[str, str], request: pytest.FixtureRequest
) -> None:
    environment.update(variables)
    client: FlaskClient = request.getfixturevalue("client")
    assert client.get("/", headers={"Host": "host.docker.internal:8080"}).status_code == 200


def seen(client: FlaskClient, log: pytest.LogCaptureFixture, **headers: str) -> str:
    """Returns the address that the log has for a request with these headers."""
    log.clear()
    client.get("/v1/models", headers={name.replace("_", "-"): value for name, value in headers.items()})
    (line,) = [record for record in log.records if record.getMessage() == "request"]
    fields: Any = line.fields  # type: ignore[attr-defined]
    return str(fields["from"])


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def test_without_a_proxy_forwarded_headers_are_ignored(client: FlaskClient, log: pytest.LogCaptureFixture) -> None:
    assert seen(client, log, X_Forwarded_For="6.6.6.6", Forwarded="for=6.6.6.6") == "127.0.0.1"
    response = client.get("/", headers={"X-Forwarded-Proto": "https"})
    assert "Strict-Transport-Security" not in response.headers


class TestBehindOneProxy:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_PROXIES": "1"}

    def test_only_the_address_that_the_proxy_added_counts(
        self, client: FlaskClient, log: pytest.LogCaptureFixture
    ) -> None:
        assert seen(client, log, X_Forwarded_For="6.6.6.6, 1.2.3.4") == "1.2.3.4"

    def test_over_tls_browsers_get_hsts(self, client: FlaskClient) -> None:
        secure = client.get("/", headers={"X-Forwarded-Proto": "https"})
        assert secure.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert "Strict-Transport-Security" not in client.get("/").headers

    def test_a_forwarded_host_is_ignored(self, client: FlaskClient) -> None:
        response = client.get("/admin", headers={"X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"})
        assert "evil" not in str(response.headers) + response.text
