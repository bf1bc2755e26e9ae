"""Finds out from the head of a request how large its body may be, so that nothing large is read for nobody."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from flask import Request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map

from bridge.config import Settings
from bridge.errors import Unauthorized
from bridge.web.prefix import path_without_prefix
from bridge.web.room import SMALL
from bridge.web.security import client_key

# The name of the extension by which the worker finds the app's BodyLimits.
BODY_LIMITS = "letta-tool-bridge-body-limits"
# The routes below this path need a client's key, and take large bodies.
_API = "/v1/"


class BodyLimits:
    """Knows the routes and the keys. The app checks both again: it answers to a head whose body was not read."""

    def __init__(self, settings: Settings, routes: Map) -> None:
        self._settings = settings
        self._routes = routes.bind("")

    def largest_body(self, head: bytes) -> int:
        """Returns the most bytes of a body that are read after this head: SMALL if the app will refuse the request."""
        line, *fields = head.decode("latin-1").split("\r\n")
        method, _, target = line.partition(" ")
        allowed = self._is_route(method, target.partition(" ")[0]) and self._has_key(fields)
        return self._settings.max_body if allowed else SMALL

    def _is_route(self, method: str, target: str) -> bool:
        try:
            path = path_without_prefix(unquote(urlsplit(target).path), self._settings.url_prefix)
            self._routes.match(path, method)
        except (HTTPException, ValueError):
            return False
        return path.startswith(_API)

    def _has_key(self, fields: list[str]) -> bool:
        shown = [
            value for name, _, value in (field.partition(":") for field in fields) if name.lower() == "authorization"
        ]
        try:
            client_key(Request({"HTTP_AUTHORIZATION": ",".join(shown).strip()}), self._settings.api_keys)
        except Unauthorized:
            return False
        return True
