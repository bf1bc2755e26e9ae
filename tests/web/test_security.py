from __future__ import annotations

import hashlib
from base64 import b64encode

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient

from bridge import errors
from bridge.letta.trouble import make_error
from bridge.web.security import CONTENT_POLICY
from tests.fakes import FakeGateway
from tests.sse_checker import check_error

KEY, OTHER = "key-of-the-first-client", "key-of-the-second-one"
HASHED = f"second:{hashlib.sha256(OTHER.encode()).hexdigest()}"
PASSWORD = "p\u00e4ssword of the admin"
ROUTES = [
    ("GET", "/v1/models"),
    ("GET", "/v1/models/Ada"),
    ("POST", "/v1/chat/completions"),
]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    keys = {"BRIDGE_API_KEYS": f"{KEY}, {HASHED}", "BRIDGE_ADMIN_PASSWORD": PASSWORD}
    return {**environment, **keys, "BRIDGE_ALLOW_ANONYMOUS": "0"}


def basic(password: str, user: str = "admin") -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


# --- keys of clients --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong-key-altogether",
        f"Bearer {KEY[:-1]}",
        f"Bearer {KEY}x",
        f"Bearer {KEY.upper()}",
        f"Basic {KEY}",
        KEY,
        f"Bearer {KEY} {OTHER}",
        f"Bearer {HASHED}",
        f"Bearer {hashlib.sha256(KEY.encode()).hexdigest()}",
        "Bearer \u00fc\u00e9",
    ],
)
@pytest.mark.parametrize(("method", "route"), ROUTES)
def test_a_request_without_a_valid_key_is_refused(
    client: FlaskClient, letta: FakeGateway, method: str, route: str, shown: str | None
) -> None:
    headers = {} if shown is None else {"Authorization": shown}
    response = client.open(route, method=method, headers=headers)
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    error = check_error(response.json or {})
    assert (error["code"], error["type"]) == ("invalid_api_key", "authentication_error")
    assert letta.calls == []


@pytest.mark.parametrize("shown", [f"Bearer {KEY}", f"bearer {KEY}", f"BEARER   {KEY} ", f"Bearer {OTHER}"])
def test_plain_and_hashed_keys_are_accepted(client: FlaskClient, shown: str) -> None:
    assert client.get("/v1/models", headers={"Authorization": shown}).status_code == 200


def test_a_key_in_the_address_is_ignored(client: FlaskClient) -> None:
    assert client.get(f"/v1/models?api_key={KEY}").status_code == 401


def test_a_refusal_does_not_repeat_the_key(client: FlaskClient) -> None:
    response = client.get("/v1/models", headers={"Authorization": "Bearer canary-key-7421"})
    assert b"canary" not in response.data


class TestWithoutKeys:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_API_KEYS": "", "BRIDGE_ALLOW_ANONYMOUS": "1"}

    @pytest.mark.parametrize("shown", [None, "Bearer", "Bearer anything", "Bearer "])
    def test_every_request_is_served(self, client: FlaskClient, shown: str | None) -> None:
        headers = {} if shown is None else {"Authorization": shown}
        assert client.get("/v1/models", headers=headers).status_code == 200


# --- the admin page ---------------------------------------------------------------------------------------


def test_the_admin_password_is_not_a_key_for_clients(client: FlaskClient) -> None:
    assert client.get("/v1/models", headers=basic(PASSWORD)).status_code == 401


@pytest.mark.parametrize("headers", [{}, basic(""), basic("anything")])
def test_without_a_password_the_admin_page_is_off(
    environment: dict[str, str], request: pytest.FixtureRequest, headers: dict[str, str]
) -> None:
    environment["BRIDGE_ADMIN_PASSWORD"] = ""
    response = request.getfixturevalue("client").get("/admin/", headers=headers)
    assert response.status_code == 403
    assert "BRIDGE_ADMIN_PASSWORD" in response.text
    assert "Ada" not in response.text


def test_the_style_of_the_admin_page_needs_no_password(client: FlaskClient) -> None:
    with client.get("/admin/static/admin.css") as response:
        assert (response.status_code, response.mimetype) == (200, "text/css")


@pytest.mark.parametrize("path", ["../admin.py", "%2e%2e/admin.py", "..%2fsecurity.py", "nothing.css"])
def test_only_static_files_are_served_from_the_static_folder(client: FlaskClient, path: str) -> None:
    assert client.get(f"/admin/static/{path}").status_code == 404


# --- every reply ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "route", "headers", "status"),
    [
        ("GET", "/v1/models", {"Authorization": f"Bearer {KEY}"}, 200),
        ("GET", "/v1/models", {}, 401),
        ("POST", "/v1/chat/completions", {"Authorization": f"Bearer {KEY}"}, 400),
        ("GET", "/v1/chat/completions", {}, 405),
        ("GET", "/nothing", {}, 404),
        ("GET", "/admin/tools", {}, 303),
        ("GET", "/admin/tools.json", {}, 401),
        ("GET", "/admin/sign-in", {}, 200),
        ("GET", "/admin/tools", basic(PASSWORD), 200),
        ("GET", "/admin/nowhere", basic(PASSWORD), 404),
        ("GET", "/admin/static/admin.css", {}, 200),
        ("GET", "/healthz", {}, 200),
        ("GET", "/readyz", {}, 200),
    ],
)
def test_every_reply_is_hardened(
    client: FlaskClient, method: str, route: str, headers: dict[str, str], status: int
) -> None:
    with client.open(route, method=method, headers=headers) as response:
        assert response.status_code == status
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == ("same-origin" if route.startswith("/admin") else "no-referrer")
    policy = response.headers["Content-Security-Policy"]
    assert all(rule in policy for rule in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"))
    assert "unsafe" not in policy
    assert response.headers["Cache-Control"] in ("no-store", "no-cache")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_a_reply_says_itself_about_caches_stays_and_about_types_does_not(app: Flask, scheme: str) -> None:
    own = {"cache-control": "max-age=5", "x-content-type-options": "sniff", "X-Own": "1"}
    app.add_url_rule("/own", view_func=lambda: Response("", headers=own))
    headers = app.test_client().get("/own", base_url=f"{scheme}://localhost").headers
    assert headers.getlist("Cache-Control") == ["max-age=5"]
    assert headers.getlist("X-Content-Type-Options") == ["nosniff"]
    assert headers.getlist("Content-Security-Policy") == [CONTENT_POLICY]
    assert headers.getlist("X-Own") == ["1"]
    assert headers.getlist("Strict-Transport-Security") == ["max-age=31536000"] * (scheme == "https")


@pytest.mark.parametrize(
    ("method", "route", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1", 404, "not_found"),
        ("GET", "/v1/embeddings", 404, "not_found"),
        ("POST", "/v1/embeddings", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("TRACE", "/v1/models", 405, "method_not_allowed"),
    ],
)
def test_unknown_paths_and_methods_get_an_openai_error(
    client: FlaskClient, method: str, route: str, status: int, code: str
) -> None:
    response = client.open(route, method=method)
    assert response.status_code == status
    assert check_error(response.json or {})["code"] == code


def test_a_wrong_method_gets_the_allowed_ones(client: FlaskClient) -> None:
    response = client.get("/v1/chat/completions")
    assert {method.strip() for method in response.headers["Allow"].split(",")} == {"POST", "OPTIONS"}
    assert "POST" in check_error(response.json or {})["message"]


# --- health -----------------------------------------------------------------------------------------------


def test_readiness_says_what_to_do_without_the_address_of_letta(client: FlaskClient, letta: FakeGateway) -> None:
    letta.fails(make_error("unknown host", "http://canary.internal:8283"), at="check_server")
    said = client.get("/readyz").json or {}
    assert "no host of that name was found. Correct the name in LETTA_BASE_URL" in said["reasons"]["letta"]
    assert "canary" not in str(said)


def test_the_process_is_alive_without_letta(client: FlaskClient, letta: FakeGateway) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at="check_server")
    assert client.get("/healthz").json == {"status": "ok"}
    assert letta.calls == []


def test_the_service_is_ready_if_letta_answers(client: FlaskClient) -> None:
    assert client.get("/readyz").json == {"status": "ok", "letta": "ok", "store": "ok", "worker": "ok"}


def test_the_service_is_not_ready_without_letta(client: FlaskClient, letta: FakeGateway) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at="check_server")
    response = client.get("/readyz")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert response.json == {"status": "not ready", "letta": "letta_unreachable", "store": "ok", "worker": "ok"}
