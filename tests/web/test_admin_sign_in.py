"""Signing in to the admin pages, sessions, and requests of other sites."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from app import create_app
from bridge.config import Settings, read_settings
from bridge.web.admin import sessions
from tests.admin import PASSWORD, Operator
from tests.fakes import FakeGateway

PAGES = ["tools", "agents", "activity", "health", "tools/some", "agents/some", "do/sweep", "nowhere"]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ADMIN_PASSWORD": PASSWORD}


@pytest.fixture
def stranger(client: FlaskClient) -> Operator:
    return Operator(client, signed_in=False)


def shown(client: FlaskClient, cookie: str) -> int:
    """Returns the status of a page for a client with this cookie."""
    name, _, value = cookie.partition("=")
    client.set_cookie(name, value)
    return client.get("/admin/tools").status_code


def basic(password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"operator:{password}".encode()).decode()}


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_shown_without_signing_in(client: FlaskClient, letta: FakeGateway, page: str) -> None:
    response = client.get(f"/admin/{page}?q=1")
    assert response.status_code == 303
    assert response.headers["Location"].startswith("/admin/sign-in?next=")
    assert letta.calls == []


@pytest.mark.parametrize("page", ["tools", "agents", "activity", "health"])
def test_a_program_without_the_password_gets_401(client: FlaskClient, page: str) -> None:
    response = client.get(f"/admin/{page}.json")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"].startswith("Basic ")
    assert (response.json or {})["error"]["message"]


def test_a_program_sends_the_password_with_each_request(client: FlaskClient) -> None:
    assert client.get("/admin/agents.json", headers=basic(PASSWORD)).status_code == 200
    assert client.get("/admin/agents.json", headers=basic("wrong")).status_code == 401
    assert client.get("/admin/agents.json", headers={"Authorization": f"Bearer {PASSWORD}"}).status_code == 401


def test_signing_in_leads_to_the_requested_page(client: FlaskClient, stranger: Operator) -> None:
    asked = client.get("/admin/agents?q=Ada")
    form = client.get(asked.headers["Location"]).text
    assert 'name="next" value="/admin/agents?q=Ada"' in form
    answer = stranger.sign_in(following="/admin/agents?q=Ada")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/agents?q=Ada")
    assert "Ada" in stranger.text("agents?q=Ada")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/admin/",
        "//evil.example",
        "/\\evil.example",
        "/v1/models",
        "javascript:alert(1)",
        "/admin/\n",
    ],
)
def test_signing_in_never_leads_to_another_host(stranger: Operator, elsewhere: str) -> None:
    assert stranger.sign_in(following=elsewhere).headers["Location"] == "/admin/"


def test_the_cookie_is_for_this_host_and_hidden_from_scripts(stranger: Operator) -> None:
    plain = stranger.sign_in().headers["Set-Cookie"]
    assert plain.startswith("bridge=")
    assert "HttpOnly" in plain
    assert "SameSite=Lax" in plain
    encrypted = stranger.sign_in(**{"X-Forwarded-Proto": "https"}).headers["Set-Cookie"]
    assert encrypted.startswith("__Host-bridge=")
    for rule in ("Secure", "HttpOnly", "Path=/", "SameSite=Lax"):
        assert rule in encrypted
    assert "Domain" not in encrypted


def test_the_cookie_does_not_contain_the_password(stranger: Operator) -> None:
    assert PASSWORD not in stranger.sign_in().headers["Set-Cookie"]
    assert sessions.key_from_password(PASSWORD) != sessions.key_from_password(PASSWORD + "x")


@pytest.mark.parametrize("password", ["", "wrong", PASSWORD + "x", PASSWORD.upper()])
def test_a_wrong_password_is_refused(stranger: Operator, password: str) -> None:
    answer = stranger.sign_in(password)
    assert answer.status_code == 401
    assert "That is not the password." in answer.text
    assert "Set-Cookie" not in answer.headers


@pytest.fixture
def same_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops the clock: wrong passwords are counted by the minute, and a test may begin at the end of one."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)


@pytest.mark.usefixtures("same_minute")
def test_too_many_wrong_passwords_block_the_address(stranger: Operator, app: Flask) -> None:
    for _ in range(sessions.MOST_FROM_ONE):
        assert stranger.sign_in("wrong").status_code == 401
    answer = stranger.sign_in()
    assert answer.status_code == 429
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert app.test_client().get("/admin/tools.json", headers=basic(PASSWORD)).status_code == 429


@pytest.mark.usefixtures("same_minute")
def test_wrong_passwords_are_counted_for_each_address_by_all_workers(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    behind_a_router = read_settings({**environment, "BRIDGE_PROXIES": "1"})
    for _ in range(sessions.MOST_FROM_ONE):
        other = Operator(create_app(behind_a_router, letta).test_client(), signed_in=False)
        assert other.sign_in("wrong", **{"X-Forwarded-For": "192.0.2.7"}).status_code == 401
    here = Operator(create_app(behind_a_router, letta).test_client(), signed_in=False)
    assert here.sign_in(**{"X-Forwarded-For": "192.0.2.7"}).status_code == 429
    assert here.sign_in(**{"X-Forwarded-For": "192.0.2.8"}).status_code == 303


@pytest.mark.usefixtures("same_minute")
def test_an_invented_forwarded_address_does_not_get_around_the_limit(stranger: Operator) -> None:
    for number in range(sessions.MOST_FROM_ONE):
        assert stranger.sign_in("wrong", **{"X-Forwarded-For": f"192.0.2.{number}"}).status_code == 401
    assert stranger.sign_in(**{"X-Forwarded-For": "198.51.100.1"}).status_code == 429


@pytest.fixture
def attacked(environment: dict[str, str], letta: FakeGateway, same_minute: None) -> Callable[[], Operator]:
    """A service to which many addresses have just sent wrong passwords. Returns browsers of it."""
    app = create_app(read_settings({**environment, "BRIDGE_PROXIES": "1"}), letta)
    for number in range(sessions.MANY):
        other = Operator(app.test_client(), signed_in=False)
        assert other.sign_in("wrong", **{"X-Forwarded-For": f"192.0.2.{number}"}).status_code == 401
    return lambda: Operator(app.test_client(), signed_in=False)


def test_the_right_password_is_accepted_whatever_other_addresses_send(attacked: Callable[[], Operator]) -> None:
    operator = attacked()
    for _ in range(3):
        assert operator.sign_in(**{"X-Forwarded-For": "198.51.100.1"}).status_code == 303


def test_after_many_wrong_passwords_each_address_has_one_try(attacked: Callable[[], Operator]) -> None:
    operator = attacked()
    assert operator.sign_in("wrong", **{"X-Forwarded-For": "198.51.100.1"}).status_code == 401
    assert operator.sign_in(**{"X-Forwarded-For": "198.51.100.1"}).status_code == 429
    assert attacked().sign_in("wrong", **{"X-Forwarded-For": "192.0.2.1"}).status_code == 429


def test_a_signed_in_operator_is_not_shut_out(stranger: Operator, same_minute: None, app: Flask) -> None:
    stranger.sign_in()
    for _ in range(sessions.MOST_FROM_ONE):
        assert Operator(app.test_client(), signed_in=False).sign_in("wrong").status_code == 401
    assert Operator(app.test_client(), signed_in=False).sign_in().status_code == 429
    stranger.page("tools")


@pytest.mark.usefixtures("same_minute")
def test_the_addresses_of_one_ipv6_network_count_as_one(environment: dict[str, str], letta: FakeGateway) -> None:
    app = create_app(read_settings({**environment, "BRIDGE_PROXIES": "1"}), letta)
    for number in range(sessions.MOST_FROM_ONE):
        other = Operator(app.test_client(), signed_in=False)
        assert other.sign_in("wrong", **{"X-Forwarded-For": f"2001:db8::{number}"}).status_code == 401
    here = Operator(app.test_client(), signed_in=False)
    assert here.sign_in(**{"X-Forwarded-For": "2001:db8::ffff:ffff:ffff:ffff"}).status_code == 429
    assert here.sign_in(**{"X-Forwarded-For": "2001:db8:0:1::1"}).status_code == 303


@pytest.mark.usefixtures("same_minute")
def test_ipv4_addresses_on_an_ipv6_socket_are_told_apart(environment: dict[str, str], letta: FakeGateway) -> None:
    app = create_app(read_settings({**environment, "BRIDGE_PROXIES": "1"}), letta)
    for _ in range(sessions.MOST_FROM_ONE):
        Operator(app.test_client(), signed_in=False).sign_in("wrong", **{"X-Forwarded-For": "::ffff:192.0.2.7"})
    here = Operator(app.test_client(), signed_in=False)
    assert here.sign_in(**{"X-Forwarded-For": "::ffff:192.0.2.7"}).status_code == 429
    assert here.sign_in(**{"X-Forwarded-For": "::ffff:192.0.2.8"}).status_code == 303


def test_a_session_is_valid_in_every_worker(settings: Settings, letta: FakeGateway, client: FlaskClient) -> None:
    cookie = Operator(client, signed_in=False).sign_in().headers["Set-Cookie"].split(";")[0]
    assert shown(create_app(settings, letta).test_client(), cookie) == 200


def test_the_cookie_of_an_ended_session_is_useless(client: FlaskClient, app: Flask) -> None:
    operator = Operator(client, signed_in=False)
    cookie = operator.sign_in().headers["Set-Cookie"].split(";")[0]
    assert shown(app.test_client(), cookie) == 200
    assert client.post("/admin/sign-out").status_code == 303
    assert client.get("/admin/tools").status_code == 303
    assert shown(app.test_client(), cookie) == 303


def test_a_session_expires(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = Operator(client)
    operator.page("tools")
    monkeypatch.setattr(sessions, "LIFETIME", -1)
    operator.page("tools", 303)


@pytest.mark.parametrize("cookie", ["bridge=nonsense", "bridge=eyJpZCI6ImEifQ.Zz.AAAA", "__Host-bridge=x"])
def test_an_invented_cookie_is_invalid(client: FlaskClient, cookie: str) -> None:
    assert shown(client, cookie) == 303


def test_a_new_password_ends_every_session(
    client: FlaskClient, environment: dict[str, str], letta: FakeGateway
) -> None:
    cookie = Operator(client, signed_in=False).sign_in().headers["Set-Cookie"].split(";")[0]
    changed = create_app(read_settings({**environment, "BRIDGE_ADMIN_PASSWORD": "another password"}), letta)
    assert shown(changed.test_client(), cookie) == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "none"}, 303),
        ({"Origin": "http://localhost"}, 303),
        ({}, 303),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://[evil"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["sign-in", "sign-out", "do/sweep"])
def test_requests_of_other_sites_are_refused(
    client: FlaskClient, path: str, headers: dict[str, str], status: int
) -> None:
    Operator(client)
    response = client.post(f"/admin/{path}", headers=headers, data={"password": PASSWORD, "target": ""})
    assert response.status_code == status


@pytest.mark.parametrize("action", ["resync", "detach", "close", "delete", "sweep"])
def test_reading_pages_changes_nothing(client: FlaskClient, letta: FakeGateway, action: str) -> None:
    operator = Operator(client)
    agent = letta.agents_named("Ada")[0].id
    client.get(f"/admin/do/{action}", query_string={"target": agent})
    operator.page("tools")
    operator.page(f"agents/{agent}")
    assert not {
        "change_agent",
        "delete_tool",
        "tag_tool",
        "put_tool",
        "give_results",
        "deny_call",
        "send_messages",
    } & set(letta.calls)


class TestUnderAPrefix:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_URL_PREFIX": "/letta/bridge"}

    @pytest.mark.parametrize("kept", ["/letta/bridge", ""])
    def test_every_link_has_the_prefix(self, client: FlaskClient, kept: str) -> None:
        """This holds for proxies that remove the prefix and for those that do not."""
        asked = client.get(f"{kept}/admin/agents?q=A")
        assert asked.headers["Location"].startswith("/letta/bridge/admin/sign-in?next=")
        answer = client.post(f"{kept}/admin/sign-in", data={"password": PASSWORD, "next": "/admin/agents?q=A"})
        assert answer.headers["Location"] == "/letta/bridge/admin/agents?q=A"
        page = client.get(f"{kept}/admin/agents?q=A").text
        assert 'href="/letta/bridge/admin/static/admin.css"' in page
        assert 'href="/admin' not in page
        assert client.get(f"{kept}/v1/models").status_code == 200

    def test_a_path_that_only_begins_like_the_prefix_is_not_found(self, client: FlaskClient) -> None:
        assert client.get("/letta/bridgework/v1/models").status_code == 404
