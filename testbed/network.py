"""Loopback HTTP and ports."""

import random
import socket
from collections.abc import Mapping
from typing import Any

import requests

# Below the ports that systems give to outgoing connections: a server takes seconds from the choice of its
# port to the use of it, and a client must not get it meanwhile.
PORTS = range(20_000, 30_000)
ATTEMPTS = 200


def free_port(preferred: int | None = None) -> int:
    """A port of the loopback that nobody listens on, the preferred one if possible."""
    candidates = random.sample(PORTS, ATTEMPTS)
    for port in [preferred, *candidates] if preferred else candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"no port of 127.0.0.1 between {PORTS.start} and {PORTS.stop} is free")


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
        answer = send("GET", f"{base_url}/v1/health/", timeout=5.0)
        return str(answer.json()["version"]) if answer.status_code == 200 else None
    except (requests.RequestException, ValueError, KeyError):
        return None
