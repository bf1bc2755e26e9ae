"""The page /docs. The home page is in test_http.py, /openapi.json in test_openapi.py."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from flask.testing import FlaskClient

from app import create_app
from bridge.config import read_settings
from bridge.web.openapi import chat
from bridge.web.openapi.errors import CODES
from tests.described import DESCRIPTION
from tests.fakes import FakeGateway

HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] for _, attributes in self.tags if attribute in attributes]


def docs_of(environment: dict[str, str], letta: FakeGateway, **settings: str) -> str:
    client = create_app(read_settings({**environment, **settings}), letta).test_client()
    answer = client.get("/docs")
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    return answer.get_data(as_text=True)


def test_the_page_has_every_operation_field_and_code(environment: dict[str, str], letta: FakeGateway) -> None:
    text = docs_of(environment, letta, BRIDGE_LETTA_API="all")
    ids = Page(text).values("id")
    for path, item in DESCRIPTION["paths"].items():
        for verb, operation in item.items():
            assert operation["operationId"] in ids
            assert f"<code>{verb.upper()} {path}</code>" in text
    for name in DESCRIPTION["components"]["schemas"]:
        assert f"schema-{name}" in ids
    for status, codes in CODES.items():
        assert f"error-{status}" in ids
        assert all(f"<code>{code}</code>" in text for code in codes)


def test_every_link_on_the_page_leads_somewhere(environment: dict[str, str], letta: FakeGateway) -> None:
    page = Page(docs_of(environment, letta, BRIDGE_LETTA_API="all"))
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    assert [link for link in page.values("href") if link.startswith("#") and link[1:] not in ids] == []


def test_lettas_own_api_is_on_the_page_only_where_it_is_on(environment: dict[str, str], letta: FakeGateway) -> None:
    assert "/letta/v1" in docs_of(environment, letta, BRIDGE_LETTA_API="agents")
    assert "/letta/v1" not in docs_of(environment, letta)


def test_the_page_needs_no_key_and_says_whether_requests_do(environment: dict[str, str], letta: FakeGateway) -> None:
    keyed = docs_of(environment, letta, BRIDGE_API_KEYS="a-long-enough-key")
    assert "Authorization: Bearer YOUR_KEY" in keyed
    assert "a-long-enough-key" not in keyed
    assert "This bridge needs none" in docs_of(environment, letta)


def test_the_page_loads_only_files_of_this_service_and_no_script(client: FlaskClient) -> None:
    answer = client.get("/docs")
    page = Page(answer.get_data(as_text=True))
    assert {tag for tag, _ in page.tags} & {"script", "iframe", "img", "style", "object", "form"} == set()
    assert not [name for _, attributes in page.tags for name in attributes if name == "style" or name.startswith("on")]
    loaded = [attributes["href"] for tag, attributes in page.tags if tag == "link"]
    assert loaded
    for path in loaded:
        assert path.startswith("/")
        with client.get(path) as file:
            assert file.status_code == 200
    assert [link for link in page.values("href") if "//" in link] == []
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("settings", [{}, {"BRIDGE_URL_PREFIX": "/bridge"}])
def test_addresses_on_the_page_have_the_prefix(
    environment: dict[str, str], letta: FakeGateway, settings: dict[str, str]
) -> None:
    prefix = settings.get("BRIDGE_URL_PREFIX", "")
    client = create_app(read_settings({**environment, **settings}), letta).test_client()
    text = client.get(f"{prefix}/docs").get_data(as_text=True)
    assert f"<code>http://localhost{prefix}/v1</code>" in text
    commands = re.findall(r"curl[^\n]*?(http://[^\s']+)", unescape(text))
    assert commands
    assert [url for url in commands if not url.startswith(f"http://localhost{prefix}/")] == []
    links = [link for link in Page(text).values("href") if not link.startswith("#")]
    assert [link for link in links if not link.startswith(f"{prefix}/")] == []
    for link in links:
        with client.get(link) as page:
            assert page.status_code in (200, 303, 404)  # the admin page is off


def test_markup_in_a_description_or_an_example_is_text_on_the_page(
    environment: dict[str, str], letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = {
        **chat.PATHS["/v1/models"]["get"],
        "summary": HOSTILE,
        "description": f"`{HOSTILE}`",
        "parameters": [{"name": HOSTILE, "in": "query", "schema": {"const": HOSTILE}, "description": HOSTILE}],
        "requestBody": {"content": {"application/json": {"schema": {}, "examples": {HOSTILE: {"value": HOSTILE}}}}},
    }
    monkeypatch.setitem(chat.PATHS, "/v1/models", {"get": operation})
    text = docs_of(environment, letta)
    assert HOSTILE not in text
    assert unescape(text).count(HOSTILE) >= 6


def test_a_host_name_with_markup_is_text_on_the_page(client: FlaskClient) -> None:
    answer = client.get("/docs", headers={"Host": 'a"><b>'})
    assert "<b>" not in answer.get_data(as_text=True)
