"""An open page that asks again gets a short answer while nothing changed, and costs Letta nothing."""

from __future__ import annotations

import logging

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from bridge.errors import LettaUnreachable, StoreUnavailable
from bridge.operation.snapshots import FRESH
from bridge.store.sqlite import LocalStore
from bridge.web.admin import live
from bridge.web.admin.live import POLL
from tests.actors import Chat
from tests.admin import PASSWORD, Operator, RecordedChat, readable_text
from tests.clock import Clock
from tests.test_complaints import held, tool
from tests.toolsets import SharedLetta
from tests.waiting import until

PAGES = ("tools", "agents", "activity", "turns", "usage", "health")


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_ADMIN_PASSWORD": PASSWORD}


@pytest.fixture(autouse=True)
def one_long_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages change once a minute in any case. The tests are about all other changes."""
    monkeypatch.setattr(live, "LONGEST_SAME", 1e12)


@pytest.fixture
def clock(app: Flask, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the snapshots."""
    made = Clock(1_700_000_000.0)
    monkeypatch.setattr(app.extensions["parts"].snapshots, "_clock", made)
    return made


@pytest.fixture
def letta() -> SharedLetta:
    fake = SharedLetta()
    fake.has_agent("Ada")
    return fake


@pytest.fixture
def operator(client: FlaskClient) -> Operator:
    return Operator(client)


@pytest.fixture
def chat(app: Flask) -> Chat:
    return RecordedChat(app)


def poll(operator: Operator, page: str, etag: str = "") -> TestResponse:
    return operator.client.get(f"/admin/{page}", headers={POLL: "1", "If-None-Match": etag})


def pages_of(operator: Operator, letta: SharedLetta) -> list[str]:
    key = operator.data("tools")["listing"]["rows"][0]["key"]
    return [*PAGES, f"tools/{key}", f"agents/{letta.agents_named('Ada')[0].id}", "turns?outcome=stop"]


def test_a_page_that_did_not_change_is_not_sent_again(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask(tools=[tool("read_file")])
    for page in pages_of(operator, letta):
        first = operator.client.get(f"/admin/{page}")
        etag = first.headers["ETag"]
        assert f'data-version="{etag[3:-1]}"' in first.text
        again = poll(operator, page, etag)
        assert (again.status_code, again.text, again.headers["ETag"]) == (304, "", etag), page
        assert poll(operator, page, 'W/"other"').status_code == 200


def test_polls_without_news_are_not_logged(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    def etag_that_stays() -> str:
        found = poll(operator, "activity").headers["ETag"]
        return found if poll(operator, "activity", found).status_code == 304 else ""

    etag = until(etag_that_stays)  # the worker lists itself a moment after the first request
    caplog.set_level(logging.INFO)
    caplog.clear()
    assert poll(operator, "activity", etag).status_code == 304
    assert caplog.records == []
    poll(operator, "activity")
    assert [record.message for record in caplog.records] == ["request"]


def test_a_turn_changes_every_page(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask(tools=[tool("read_file")])
    pages = pages_of(operator, letta)
    etags = {page: operator.client.get(f"/admin/{page}").headers["ETag"] for page in pages}
    chat.ask("Hello again", tools=[tool("read_file")])
    for page, etag in etags.items():
        assert poll(operator, page, etag).status_code == 200, page


def test_an_action_and_a_change_on_letta_change_the_pages(operator: Operator, letta: SharedLetta, clock: Clock) -> None:
    etags = {page: poll(operator, page).headers["ETag"] for page in PAGES}
    operator.does("sweep")
    assert poll(operator, "activity", etags["activity"]).status_code == 200
    etags = {page: poll(operator, page).headers["ETag"] for page in PAGES}
    letta.has_agent("Charles")
    clock.now += 200
    assert {page: poll(operator, page, etag).status_code for page, etag in etags.items()} == {
        "tools": 200,
        "agents": 200,
        "health": 200,
        "activity": 304,
        "turns": 304,
        "usage": 304,
    }


def test_polling_asks_letta_for_nothing_but_the_snapshots(
    operator: Operator, chat: Chat, letta: SharedLetta, clock: Clock
) -> None:
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[tool("read_file")])
    pages = pages_of(operator, letta)
    ada = next(page for page in pages if page.startswith("agents/"))
    letta.calls.clear()
    for _ in range(3):
        for page in pages:
            assert poll(operator, page).status_code == 200
    assert letta.calls == []
    assert "waits for a result" in poll(operator, ada).text
    clock.now += FRESH * 20
    for page in pages:
        poll(operator, page)
    # Whether Letta answers is checked on the side, for all pages.
    assert [call for call in letta.calls if call != "check_server"] == ["features", "tools", "whole_agents"]


@pytest.fixture
def several_chats(environment: dict[str, str]) -> None:
    environment["BRIDGE_CHATS"] = "each+main"


@pytest.mark.usefixtures("several_chats")
def test_a_polled_page_lists_chats_and_their_calls_from_the_history(
    operator: Operator, chat: Chat, letta: SharedLetta
) -> None:
    ada = f"agents/{letta.agents_named('Ada')[0].id}"
    letta.will(*held(("read_file", "{}")))
    chat.ask(tools=[tool("read_file")])
    whole = readable_text(operator.page(ada))
    letta.calls.clear()
    polled = readable_text(poll(operator, ada).text)
    assert [call for call in letta.calls if call != "check_server"] in ([], ["features", "tools", "whole_agents"])
    for text in (whole, polled):
        assert "main chat in the context now" in text
        assert "ago read_file" in text.replace("just now", "ago")
        assert "waits for a result" not in text


def test_pages_of_turns_never_ask_letta(operator: Operator, chat: Chat, letta: SharedLetta) -> None:
    chat.ask()
    letta.calls.clear()
    for page in ("activity", "turns", "usage"):
        operator.page(page)
        poll(operator, page)
    assert letta.calls == []


def test_polls_say_that_letta_is_down_and_that_it_is_up_again(
    operator: Operator, letta: SharedLetta, clock: Clock
) -> None:
    etag = poll(operator, "health").headers["ETag"]
    letta.fails(LettaUnreachable("It is down."), at="features")
    clock.now += 200
    down = poll(operator, "health", etag)
    assert "Letta down" in readable_text(down.text)
    assert "It is down. What you see of it is" in readable_text(poll(operator, "agents").text)
    letta.recovers()
    assert "Letta up" in readable_text(poll(operator, "health", down.headers["ETag"]).text)


def test_polls_say_that_the_store_fails(operator: Operator, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    chat.ask()
    etag = poll(operator, "turns").headers["ETag"]

    def broken(*_: object) -> None:
        raise StoreUnavailable("The disk is gone.")

    with monkeypatch.context() as patched:
        for name in ("get", "get_all", "items"):
            patched.setattr(LocalStore, name, broken)
        failing = poll(operator, "turns", etag)
        assert "The disk is gone." in failing.text
    assert poll(operator, "turns", failing.headers["ETag"]).status_code == 200
    assert poll(operator, "turns", etag).status_code == 304


def test_a_poll_does_not_take_the_message_of_an_action(operator: Operator, chat: Chat) -> None:
    chat.ask()
    done = operator.client.post("/admin/do/sweep", data={"target": ""})
    poll(operator, "tools")
    assert 'role="status" data-stays' in operator.client.get(done.headers["Location"]).text


def test_a_poll_without_a_session_is_sent_to_the_sign_in(operator: Operator) -> None:
    etag = poll(operator, "tools").headers["ETag"]
    operator.client.post("/admin/sign-out")
    answer = poll(operator, "tools", etag)
    assert (answer.status_code, answer.text.count("<main")) == (303, 0)


def test_a_polled_page_of_an_agent_that_was_deleted_is_not_found(operator: Operator, letta: SharedLetta) -> None:
    operator.page("agents")
    assert poll(operator, "agents/agent-0").status_code == 404
    # Whether Letta answers is checked on the side, for all pages.
    assert [call for call in letta.calls if call != "check_server"] == ["features", "tools", "whole_agents"]


def test_only_admin_pages_may_run_the_script(operator: Operator, client: FlaskClient) -> None:
    for page in ("/admin/tools", "/admin/sign-in"):
        policy = client.get(page).headers["Content-Security-Policy"]
        assert "script-src 'self'; connect-src 'self'" in policy
        assert "default-src 'none'" in policy
    assert "script-src" not in client.get("/").headers["Content-Security-Policy"]
    with client.get("/admin/static/live.js") as script:
        assert script.mimetype in ("text/javascript", "application/javascript")
        assert "innerHTML" not in script.text
