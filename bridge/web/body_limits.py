"""Finds out from the head of a request how large its body may be, so that nothing large is read for nobody."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from flask import Request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map

from bridge.config import Settings
from bridge.errors import Unauthorized
from bridge.passthrough.rights import right_of
from bridge.web.api_paths import is_api_path, is_letta_path
from bridge.web.prefix import path_without_prefix
from bridge.web.room import SMALL
from bridge.web.security import client_key

# The name of the extension by which the worker finds the app's BodyLimits.
BODY_LIMITS = "letta-tool-bridge-body-limits"


class BodyLimits:
    """Knows the routes and the keys. The app checks both again: it answers to a head whose body was not read."""

    def __init__(self, settings: Settings, routes: Map) -> None:
        self._settings = settings
        self._routes = routes.bind("")

    def largest_body(self, head: bytes) -> int:
        """Returns the most bytes of a body that are read after this head: SMALL if the app will refuse the request."""
        line, *fields = head.decode("latin-1").split("\r\n")
        method, _, target = line.partition(" ")
        path = self._api_path(method, target.partition(" ")[0])
        return self._settings.max_body if path and self._may_use(path, fields) else SMALL

    def _api_path(self, method: str, target: str) -> str:
        """Returns the path of a request to a route of an API; "" for all others."""
        try:
            path = path_without_prefix(unquote(urlsplit(target).path), self._settings.url_prefix)
            self._routes.match(path, method)
        except (HTTPException, ValueError):
            return ""
        return path if is_api_path(path) else ""

    def _may_use(self, path: str, fields: list[str]) -> bool:
        """Returns whether the head has a valid key, and for Letta's own API one that has any right there."""
        shown = [
            value for name, _, value in (field.partition(":") for field in fields) if name.lower() == "authorization"
        ]
        try:
            key = client_key(Request({"HTTP_AUTHORIZATION": ",".join(shown).strip()}), self._settings.api_keys)
        except Unauthorized:
            return False
        return not is_letta_path(path) or right_of(key, self._settings.letta_api) != "off"
