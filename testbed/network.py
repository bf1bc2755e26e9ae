"""Loopback HTTP and ports."""

import fcntl
import os
import random
import socket
import tempfile
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import requests

# Below the ports that systems give to outgoing connections: a server takes seconds from the choice of its
# port to the use of it, and a client must not get it meanwhile.
PORTS = range(20_000, 30_000)
ATTEMPTS = 200


_given: set[int] = set()
_guard = threading.Lock()


def free_port(preferred: int | None = None) -> int:
    """A port of the loopback that nobody listens on, the preferred one if possible.

    It is this process's for as long as that lives: nobody else is given it before its server listens, or between two
    servers there.
    """
    with _guard:
        candidates = [port for port in random.sample(PORTS, ATTEMPTS) if port not in _given]
        for port in [preferred, *candidates] if preferred else candidates:
            if _is_ours(port) and _is_free(port):
                _given.add(port)
                return port
    raise OSError(f"no port of 127.0.0.1 between {PORTS.start} and {PORTS.stop} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _is_ours(port: int) -> bool:
    """Taken, for this process, from all of this user; the system lets go of it when the process ends."""
    try:
        fcntl.lockf(_ports(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _ports() -> int:
    """A file with a byte for each port, which stays open: to close it would let go of them all."""
    path = Path(tempfile.gettempdir()) / f"testbed-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def send(
    method: str,
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    password: str | None = None,
    timeout: float = 60.0,
) -> requests.Response:
    """One request to a server of ours, past any proxy that the environment names."""
    headers = {} if password is None else {"Authorization": f"Bearer {password}"}
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, json=body, headers=headers, timeout=timeout)


def health(base_url: str) -> str | None:
    """The version that a Letta server names, or None if it does not answer. Asks for no password."""
    try:
        answer = send("GET", f"{base_url}/v1/health/", timeout=20.0)
        return str(answer.json()["version"]) if answer.status_code == 200 else None
    except (requests.RequestException, ValueError, KeyError):
        return None
