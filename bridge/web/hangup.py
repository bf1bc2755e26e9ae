"""Whether the client is still there, asked of its socket: a write would tell only after the second one."""

from __future__ import annotations

import select
import socket
from collections.abc import Mapping
from typing import Any


def client_is_gone(environ: Mapping[str, Any]) -> bool:
    """True when the client has closed its connection. False where the server does not lend its socket."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    try:
        readable, _, _ = select.select([connection], [], [], 0)
        return bool(readable) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True
