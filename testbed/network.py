"""HTTP requests on this machine, and free ports."""

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

# Below the ports that systems give to outgoing connections: a server uses its port seconds after the port was chosen,
# and a client must not get it in that time.
PORTS = range(20_000, 30_000)
ATTEMPTS = 200


_given: set[int] = set()
_guard = threading.Lock()


def free_port(preferred: int | None = None) -> int:
    """Returns a port of 127.0.0.1 on which no process listens, the preferred one if possible.

    The port is reserved until this process ends, so that no other process gets it before a server listens there, or
    between two servers.
    """
    with _guard:
        candidates = [port for port in random.sample(PORTS, ATTEMPTS) if port not in _given]
        for port in [preferred, *candidates] if preferred else candidates:
            if _reserve(port) and _is_free(port):
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


def _reserve(port: int) -> bool:
    """Reserves the port among the processes of this user. The system frees it when this process ends."""
    try:
        fcntl.lockf(_ports(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _ports() -> int:
    """Opens a file with a byte for each port. It stays open, because closing it would free all ports."""
    path = Path(tempfile.gettempdir()) / f"testbed-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def address_in_the_network() -> str | None:
    """Returns this machine's address in its network, None if it has none. Nothing is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return str(probe.getsockname()[0])


def send(
    method: str,
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    password: str | None = None,
    timeout: float = 60.0,
) -> requests.Response:
    """Sends one request to a local server, without any proxy of the environment."""
    headers = {} if password is None else {"Authorization": f"Bearer {password}"}
    with requests.Session() as session:
        session.trust_env = False
        return session.request(method, url, json=body, headers=headers, timeout=timeout)


def health(base_url: str) -> str | None:
    """Returns the version that a Letta server reports, or None if it does not answer. It needs no password."""
    try:
        answer = send("GET", f"{base_url}/v1/health/", timeout=20.0)
        return str(answer.json()["version"]) if answer.status_code == 200 else None
    except (requests.RequestException, ValueError, KeyError):
        return None
