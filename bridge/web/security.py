"""Checks keys, tokens and passwords, and adds the security headers to every response."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

from flask import Flask, Request
from werkzeug.middleware.proxy_fix import ProxyFix

from bridge.errors import Unauthorized
from bridge.keys import ENTRY, ApiKey
from bridge.web.prefix import Environ, Wsgi

Headers = list[tuple[str, str]]

# Headers in which clients of other services send their keys.
_KEY_HEADERS = ("X-Api-Key", "Api-Key")
# What people and clients send in place of a key that is not set.
_STAND_INS = frozenset({"none", "null", "undefined", "no-key", "not-needed"})
# What a page may load and do. Only the admin pages may do more: they have scripts.
CONTENT_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# Headers of every response, and of every response over https.
ALWAYS: Headers = [
    ("X-Content-Type-Options", "nosniff"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
ENCRYPTED: Headers = [*ALWAYS, ("Strict-Transport-Security", "max-age=31536000")]
# Headers of every response that does not say something else.
USUALLY: Headers = [
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", CONTENT_POLICY),
]
_ADDED = frozenset(name.lower() for name, _ in (*ENCRYPTED, *USUALLY))


def client_key(request: Request, keys: tuple[ApiKey, ...]) -> ApiKey | None:
    """Returns the one of `keys` that the request sends as its bearer token. None if `keys` is empty.
    The duration of the comparison does not depend on the key that was sent.
    """
    if not keys:
        return None
    shown = _bearer_token(request)
    digest = hashlib.sha256((shown or "").encode()).hexdigest()
    matching = [key for key in keys if hmac.compare_digest(key.sha256, digest)]
    if shown is None or not matching:
        raise Unauthorized(_what_is_wrong_with_key(request, shown))
    return matching[0]


def _what_is_wrong_with_key(request: Request, shown: str | None) -> str:
    """Returns what the client did with its key, whatever the key is."""
    if shown and ENTRY.fullmatch(shown):
        return (
            "This is an entry of BRIDGE_API_KEYS, which has the key's hash only. Set the client's API key to the key"
            " itself, which `keys new` printed above the entry."
        )
    if shown and shown.lower() not in _STAND_INS:
        return "The API key is not one of this service. Set the client's API key to one that its operator gave you."
    header = next((name for name in _KEY_HEADERS if request.headers.get(name)), "")
    if header and not shown:
        return f"The API key came in the header `{header}`. Send it as `Authorization: Bearer <key>`."
    if shown is None and request.headers.get("Authorization"):
        return "The header `Authorization` does not begin with `Bearer`. Send it as `Authorization: Bearer <key>`."
    return (
        "No API key came, and this service needs one. Set the client's API key to one that its operator gave you; it is"
        " sent as `Authorization: Bearer <key>`."
    )


def bearer_token_matches(request: Request, key: str) -> bool:
    """Returns whether the request sends `key` as its bearer token, in a time that does not show how much was right."""
    shown = _bearer_token(request)
    return hmac.compare_digest((shown or "").encode(), key.encode()) and shown is not None


def _bearer_token(request: Request) -> str | None:
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    return shown.strip() if scheme.lower() == "bearer" else None


def password_matches(shown: str | None, password: str) -> bool:
    return hmac.compare_digest((shown or "").encode(), password.encode())


def harden_app(app: Flask, proxies: int) -> None:
    """Adds security headers to every response.
    The app believes the X-Forwarded-For and X-Forwarded-Proto of as many proxies as `proxies`.
    """
    app.wsgi_app = _with_security_headers(app.wsgi_app)  # type: ignore[method-assign,assignment]
    if proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies)  # type: ignore[method-assign]


def _with_security_headers(inner: Wsgi) -> Wsgi:
    """Returns a WSGI app that adds the headers to the responses of `inner`, all at once: Flask would look for each in
    the list of all.
    """

    def outer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        always = ENCRYPTED if environ["wsgi.url_scheme"] == "https" else ALWAYS

        def start(status: str, headers: Headers, fault: Any = None) -> Any:
            return start_response(status, _hardened(headers, always), fault)

        return inner(environ, start)

    return outer


def _hardened(headers: Headers, always: Headers) -> Headers:
    given = {name.lower() for name, _ in headers}
    if given.isdisjoint(_ADDED):
        return [*headers, *always, *USUALLY]
    ours = {name.lower() for name, _ in always}
    kept = [(name, value) for name, value in headers if name.lower() not in ours]
    return [*kept, *always, *((name, value) for name, value in USUALLY if name.lower() not in given)]
