"""An operator who uses the admin pages, and a client whose turns the pages show."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.actors import Chat, ChatReply

PASSWORD = "the operator's password"


class Operator:
    """An operator, signed in unless a test says otherwise."""

    def __init__(self, client: FlaskClient, *, signed_in: bool = True) -> None:
        self.client = client
        if signed_in:
            assert self.sign_in().status_code == 303

    def sign_in(self, password: str = PASSWORD, *, following: str = "", **headers: str) -> TestResponse:
        return self.client.post("/admin/sign-in", data={"password": password, "next": following}, headers=headers)

    def page(self, path: str, status: int = 200) -> str:
        """Returns a page as HTML."""
        response = self.client.get(f"/admin/{path}")
        assert response.status_code == status, response.text
        return response.text

    def text(self, path: str, status: int = 200) -> str:
        """Returns the text of a page."""
        return readable_text(self.page(path, status))

    def data(self, path: str) -> Any:
        """Returns the JSON twin of a page."""
        path, _, query = path.partition("?")
        response = self.client.get(f"/admin/{path}.json?{query}")
        assert response.status_code == 200, response.text
        return response.json

    def asks(self, action: str, target: str = "") -> str:
        """Returns the text of the confirmation page."""
        response = self.client.get(f"/admin/do/{action}", query_string={"target": target})
        assert response.status_code == 200, response.text
        return readable_text(response.text)

    def does(self, action: str, target: str = "") -> str:
        """Does the action, and returns the text of the page that follows."""
        response = self.client.post(f"/admin/do/{action}", data={"target": target})
        assert response.status_code == 303, response.text
        return readable_text(self.client.get(response.headers["Location"]).text)


class RecordedChat(Chat):
    """A client whose turns are in the history as soon as they are answered."""

    def __init__(self, app: Flask, key: str = "") -> None:
        super().__init__(app.test_client())
        self._recorder = app.extensions["parts"].recorder
        self._key = {"Authorization": f"Bearer {key}"} if key else {}

    def post(self, body: Any, *, headers: Mapping[str, str] | None = None) -> ChatReply:
        reply = super().post(body, headers={**self._key, **(headers or {})})
        self._recorder.flush()
        return reply


def readable_text(html: str) -> str:
    """Returns the text of a page's main part, without tags."""
    body = html.partition("<main")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", f"<main{body}")).split())
