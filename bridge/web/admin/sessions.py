"""Who is the operator: a signed cookie that every worker can read, a door that opens slowly, and nobody from elsewhere.

The key of the signature is made from the password, at a cost that keeps a stolen cookie from telling it. So workers
need not agree on another secret, and another password ends every session.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Request, request
from flask.sessions import SecureCookieSessionInterface

from bridge.errors import Busy, Forbidden, StoreUnavailable, Unauthorized
from bridge.store.port import Store
from bridge.web.security import password_matches

LIFETIME = 12 * 3600
# Wrong passwords that are taken within a window of so many seconds: from one address, and from all together.
WINDOW = 60
MOST_FROM_ONE = 5
MOST_FROM_ALL = 30


class SignedSessions(SecureCookieSessionInterface):
    """Cookies that no script and no other site can use, bound to this very host where the connection is encrypted."""

    def get_cookie_name(self, app: Flask) -> str:
        return "__Host-bridge" if is_encrypted(request) else "bridge"

    def get_cookie_secure(self, app: Flask) -> bool:
        return is_encrypted(request)

    def get_cookie_samesite(self, app: Flask) -> str:
        return "Lax"

    def get_cookie_path(self, app: Flask) -> str:
        return "/"


def is_encrypted(request: Request) -> bool:
    """As the platform's router says it. Who lies about it harms nobody but himself: his cookie gets stricter."""
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def secret_key(password: str) -> bytes:
    return hashlib.scrypt(password.encode(), salt=b"letta-tool-bridge admin session", n=2**14, r=8, p=1)


def is_from_here(request: Request) -> bool:
    """Whether a page of this service sent the request, or no page at all."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("Origin")
    return origin is None or origin.partition("://")[2] == request.host


def refuse_others(request: Request) -> None:
    if not is_from_here(request):
        raise Forbidden("This was sent by a page of another site; open the admin page and do it there.")


@dataclass(slots=True)
class SignIn:
    """Lets in who knows the password. Wrong ones are counted in the store, for all workers together."""

    password: str
    store: Store
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, request: Request, shown: str | None) -> None:
        """Raises what is to be told to one who must stay outside."""
        window = int(time.time() // WINDOW)
        limits = {
            f"wrong passwords {window}": MOST_FROM_ALL,
            f"wrong passwords {window} {_who(request)}": MOST_FROM_ONE,
        }
        if any(self._count(key, 0) >= most for key, most in limits.items()):
            wait = WINDOW - int(time.time()) % WINDOW
            raise Busy(f"Too many wrong passwords. Try again in {wait} seconds.", retry_after=wait)
        if password_matches(shown, self.password):
            return
        for key in limits:
            self._count(key, 1)
        raise Unauthorized("That is not the password.", code="wrong_password")

    def begin(self, session: MutableMapping[str, Any]) -> None:
        session.clear()
        session.update(id=secrets.token_hex(16), begun=int(time.time()))

    def end(self, session: MutableMapping[str, Any]) -> None:
        """The cookie is of no more use, also to one who has a copy of it."""
        self._put(f"session over {session.get('id')}")
        session.clear()

    def knows(self, session: MutableMapping[str, Any]) -> bool:
        name, begun = session.get("id"), session.get("begun")
        if not isinstance(name, str) or not isinstance(begun, int):
            return False
        return 0 <= time.time() - begun < LIFETIME and not self._is_over(name)

    def _is_over(self, name: str) -> bool:
        try:
            return self.store.get(f"session over {name}") is not None
        except StoreUnavailable:
            return False

    def _put(self, key: str) -> None:
        try:
            self.store.put(key, "1", LIFETIME)
        except StoreUnavailable:
            return

    def _count(self, key: str, by: int) -> int:
        """Without a store this worker counts alone: the page is needed most when things are broken."""
        try:
            return self.store.count(key, by, 2 * WINDOW)
        except StoreUnavailable:
            with self._lock:
                self._counts[key] += by
                return self._counts[key]


def _who(request: Request) -> str:
    """The address, as far as the proxies that are counted vouch for it."""
    return hashlib.sha256((request.remote_addr or "").encode()).hexdigest()[:16]
