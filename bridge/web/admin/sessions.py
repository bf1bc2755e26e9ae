"""How the operator signs in: a signed cookie that every worker can read, few tries of the password, no other sites.

The key of the signature is made from the password. So workers need no other common secret, and a new password ends
every session. Making the key is slow, so that the password cannot be guessed from a stolen cookie.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from flask import Flask, Request, request
from flask.sessions import SecureCookieSessionInterface

from bridge.errors import Busy, Forbidden, StoreUnavailable, Unauthorized
from bridge.store.port import Store
from bridge.web.security import password_matches

LIFETIME = 12 * 3600
# How many wrong passwords are allowed within WINDOW seconds: from one address, and from all addresses together.
WINDOW = 60
MOST_FROM_ONE = 5
MOST_FROM_ALL = 30


class SignedSessions(SecureCookieSessionInterface):
    """Cookies that no script and no other site can use. Over an encrypted connection they are bound to this host."""

    def get_cookie_name(self, app: Flask) -> str:
        return "__Host-bridge" if is_encrypted(request) else "bridge"

    def get_cookie_secure(self, app: Flask) -> bool:
        return is_encrypted(request)


def is_encrypted(request: Request) -> bool:
    """Believes the header of the platform's router. A client that lies only gets a stricter cookie."""
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def key_from_password(password: str) -> bytes:
    return hashlib.scrypt(password.encode(), salt=b"letta-tool-bridge admin session", n=2**14, r=8, p=1)


def refuse_other_sites(request: Request) -> None:
    """Raises if a page of another site sent the request. Requests that no page sent are accepted."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        allowed = site in ("same-origin", "none")
    else:
        allowed = origin is None or origin.partition("://")[2] == request.host
    if not allowed:
        raise Forbidden("This was sent by a page of another site; open the admin page and do it there.")


@dataclass(slots=True)
class SignIn:
    """Checks passwords and sessions. Wrong passwords are counted in the store, for all workers together."""

    password: str
    store: Store
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check_password(self, request: Request, shown: str | None) -> None:
        """Raises if the password is wrong, or if too many wrong ones came before it."""
        window = int(time.time() // WINDOW)
        limits = {
            f"wrong passwords {window}": MOST_FROM_ALL,
            f"wrong passwords {window} {_address_digest(request)}": MOST_FROM_ONE,
        }
        if any(self._add_to_count(key, 0) >= most for key, most in limits.items()):
            wait = WINDOW - int(time.time()) % WINDOW
            raise Busy(f"Too many wrong passwords. Try again in {wait} seconds.", retry_after=wait)
        if password_matches(shown, self.password):
            return
        for key in limits:
            self._add_to_count(key, 1)
        raise Unauthorized("That is not the password.", code="wrong_password")

    def begin_session(self, session: MutableMapping[str, Any]) -> None:
        session.clear()
        session.update(id=secrets.token_hex(16), begun=int(time.time()))

    def end_session(self, session: MutableMapping[str, Any]) -> None:
        """Makes the cookie useless, also a copy of it."""
        with suppress(StoreUnavailable):
            self.store.put(f"session over {session.get('id')}", "1", LIFETIME)
        session.clear()

    def is_valid_session(self, session: MutableMapping[str, Any]) -> bool:
        name, begun = session.get("id"), session.get("begun")
        if not isinstance(name, str) or not isinstance(begun, int):
            return False
        with suppress(StoreUnavailable):
            if self.store.get(f"session over {name}") is not None:
                return False
        return 0 <= time.time() - begun < LIFETIME

    def _add_to_count(self, key: str, by: int) -> int:
        """Counts in this worker alone if the store fails: the operator needs the page most when things are broken."""
        try:
            return self.store.count(key, by, 2 * WINDOW)
        except StoreUnavailable:
            with self._lock:
                self._counts[key] += by
                return self._counts[key]


def _address_digest(request: Request) -> str:
    """Returns a hash of the address, as the trusted proxies report it."""
    return hashlib.sha256((request.remote_addr or "").encode()).hexdigest()[:16]
