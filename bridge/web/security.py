"""Who may come in: keys of clients, the password of the admin page, and the headers on every reply."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

from flask import Flask, Request, Response, request
from werkzeug.middleware.proxy_fix import ProxyFix

from bridge.errors import Unauthorized
from bridge.keys import ApiKey
from bridge.web.prefix import Environ, Wsgi

# Commands on the machine itself, such as `chat`, ask by these.
THIS_MACHINE = ("localhost", "127.0.0.1")
# Balancers and kubelets ask these by an address that no setting can know; they tell nothing that is worth a name.
PROBES = frozenset({"/healthz", "/readyz"})


def client_key(request: Request, keys: tuple[ApiKey, ...]) -> ApiKey | None:
    """The key that the request shows; None when the service runs without keys. Every key is compared, in equal time."""
    if not keys:
        return None
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    digest = hashlib.sha256(shown.strip().encode()).hexdigest()
    matching = [key for key in keys if hmac.compare_digest(key.sha256, digest)]
    if scheme.lower() != "bearer" or not matching:
        raise Unauthorized("A valid API key of this service is needed: send `Authorization: Bearer <key>`.")
    return matching[0]


def shown_key_matches(request: Request, key: str) -> bool:
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    return hmac.compare_digest(shown.strip().encode(), key.encode()) and scheme.lower() == "bearer"


def password_matches(shown: str | None, password: str) -> bool:
    return hmac.compare_digest((shown or "").encode(), password.encode())


def harden(app: Flask, trusted_hosts: frozenset[str], proxies: int) -> None:
    """Nothing here is for a frame, a cache or a script from elsewhere.

    Of what proxies say of a client, only what `proxies` of them in a row can have said is believed.
    """
    if trusted_hosts:
        app.config["TRUSTED_HOSTS"] = [*trusted_hosts, *THIS_MACHINE]
        app.wsgi_app = _probed_by_any_name(app.wsgi_app)  # type: ignore[method-assign,assignment]
    if proxies:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=proxies, x_proto=proxies)  # type: ignore[method-assign]

    @app.after_request
    def headers(response: Response) -> Response:
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.setdefault("Referrer-Policy", "no-referrer")
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if request.is_secure:
            response.headers["Strict-Transport-Security"] = "max-age=31536000"
        response.headers["Content-Security-Policy"] = (
            "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
            " frame-ancestors 'none'"
        )
        return response


def _probed_by_any_name(inner: Wsgi) -> Wsgi:
    def outer(environ: Environ, start_response: Any) -> Iterable[bytes]:
        if environ.get("PATH_INFO") in PROBES:
            environ["HTTP_HOST"] = THIS_MACHINE[0]
        return inner(environ, start_response)

    return outer
