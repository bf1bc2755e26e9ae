"""The service as a process in front of a server of the tests: its settings, its metrics, and clients of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
from prometheus_client.parser import text_string_to_metric_families

from testbed.network import free_port
from testbed.service import Service
from tests.waiting import SOON

BODY = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
# Parameters of a service whose streams begin at once, however quiet the agent is.
PROMPT = {"header_wait": 0.0, "ping_interval": 0.2}


def environment(letta_url: str, tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(tmp_path),
        "LETTA_BASE_URL": letta_url,
        "BRIDGE_HOST": "127.0.0.1",
        "PORT": str(free_port()),
        "WEB_CONCURRENCY": "2",
        "BRIDGE_ALLOW_ANONYMOUS": "0" if "BRIDGE_API_KEYS" in more else "1",
        "BRIDGE_DATA_DIR": str(tmp_path / "data"),
        **more,
    }


def samples(bridge: Service, name: str) -> float:
    """The sum of a metric, as Prometheus' own parser reads it."""
    families = text_string_to_metric_families(requests.get(f"{bridge.url}/metrics", timeout=SOON).text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def connected(bridge: Service, sent: bytes) -> socket.socket:
    """A client's own connection, on which `sent` has been sent."""
    host, port = bridge.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=3 * SOON)
    connection.sendall(sent)
    return connection


def asking(bridge: Service, body: Mapping[str, Any]) -> socket.socket:
    """Opens a connection and sends a request for a chat completion."""
    content = json.dumps(body).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return connected(bridge, f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)


def rest_of(connection: socket.socket) -> bytes:
    """Everything that comes until the connection is closed."""
    got = b""
    while piece := connection.recv(65536):
        got += piece
    return got
