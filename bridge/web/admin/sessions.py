"""Signs the operator in, with a signed cookie. Limits wrong passwords, and refuses requests from other sites.

The key of the signature is made from the password. So the workers need no other common secret, and a new password ends
every session. Making the key is slow, so that the password can't be guessed from a stolen cookie.
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
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from flask import Flask, Request, request
from flask.sessions import SecureCookieSessionInterface

from bridge.errors import Busy, Forbidden, StoreUnavailable, Unauthorized
from bridge.store.port import Store
from bridge.web.other_sites import is_from_other_site
from bridge.web.security import password_matches

# Seconds until a session ends.
LIFETIME = 12 * 3600
# The wrong passwords that are allowed from one address within WINDOW seconds: usually, and after MANY from all
# addresses together. So many addresses can't guess much, and others can't lock out who knows the password.
WINDOW = 60
MOST_FROM_ONE = 5
MOST_AFTER_MANY = 1
MANY = 30


class SignedSessions(SecureCookieSessionInterface):
    """Flask's signed cookies, with a name and the attribute Secure that depend on the connection.
    The prefix `__Host-` makes browsers send the cookie only encrypted, and only to this host.
    """

    def get_cookie_name(self, app: Flask) -> str:
        return "__Host-bridge" if is_encrypted(request) else "bridge"

    def get_cookie_secure(self, app: Flask) -> bool:
        return is_encrypted(request)


def is_encrypted(request: Request) -> bool:
    """Returns whether the client's connection, maybe to a proxy, is encrypted.
    Anybody can send the proxy's header: a client that lies only gets a cookie with more restrictions.
    """
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def key_from_password(password: str) -> bytes:
    return hashlib.scrypt(password.encode(), salt=b"letta-tool-bridge admin session", n=2**14, r=8, p=1)


def refuse_other_sites(request: Request) -> None:
    """Raises Forbidden if a page of another site sent the request. Accepts requests that no page sent."""
    if is_from_other_site(request):
        raise Forbidden("This was sent by a page of another site; open the admin page and do it there.")


@dataclass(slots=True)
class SignIn:
    """Checks the operator's password and sessions. Counts wrong passwords in the store, for all workers together."""

    password: str
    store: Store
    _counts: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check_password(self, request: Request, shown: str | None) -> None:
        """Raises Unauthorized for a wrong password. After too many from this address, raises Busy for every one."""
        window = int(time.time() // WINDOW)
        of_all = f"wrong passwords {window}"
        of_this = f"{of_all} {_address_digest(request)}"
        most = MOST_AFTER_MANY if self._add_to_count(of_all, 0) >= MANY else MOST_FROM_ONE
        if self._add_to_count(of_this, 0) >= most:
            wait = WINDOW - int(time.time()) % WINDOW
            raise Busy(
                f"Too many wrong passwords from your address. Try again in {wait} seconds."
                " If all clients seem to have one address, set BRIDGE_PROXIES.",
                retry_after=wait,
            )
        if password_matches(shown, self.password):
            return
        for key in (of_all, of_this):
            self._add_to_count(key, 1)
        raise Unauthorized("That is not the password.", code="wrong_password")

    def begin_session(self, session: MutableMapping[str, Any]) -> None:
        session.clear()
        session.update(id=secrets.token_hex(16), begun=int(time.time()))

    def end_session(self, session: MutableMapping[str, Any]) -> None:
        """Empties the cookie, and notes the end in the store, so that no copy of the cookie is valid.
        If the store fails, a copy stays valid until LIFETIME has passed.
        """
        with suppress(StoreUnavailable):
            self.store.put(f"session over {session.get('id')}", "1", LIFETIME)
        session.clear()

    def is_valid_session(self, session: MutableMapping[str, Any]) -> bool:
        """Returns whether the session is valid. While the store fails, a session that was ended counts as valid."""
        name, begun = session.get("id"), session.get("begun")
        if not isinstance(name, str) or not isinstance(begun, int):
            return False
        with suppress(StoreUnavailable):
            if self.store.get(f"session over {name}") is not None:
                return False
        return 0 <= time.time() - begun < LIFETIME

    def _add_to_count(self, key: str, by: int) -> int:
        """Adds `by` to the count `key` in the store, and returns the new count.
        While the store fails, each worker counts for itself: the operator needs the page most during failures.
        """
        try:
            return self.store.add_to_counter(key, by, 2 * WINDOW)
        except StoreUnavailable:
            with self._lock:
                self._counts[key] += by
                return self._counts[key]


def _address_digest(request: Request) -> str:
    return hashlib.sha256(_network(request.remote_addr or "").encode()).hexdigest()[:16]


def _network(address: str) -> str:
    """Returns the network that one customer of a provider has: with IPv6, 2 ** 64 addresses."""
    with suppress(ValueError):
        found = ip_address(address)
        if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
            return str(ip_network((found, 64), strict=False))
    return address
