"""What the socket of a client tells: whether it is still there (a write would tell only after the second one)."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Mapping
from typing import Any


def client_is_gone(environ: Mapping[str, Any]) -> bool:
    """True when the client has closed its connection. False where it can't be looked at."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket) or isinstance(connection, ssl.SSLSocket):
        return False
    try:
        return is_ready(connection, select.POLLIN) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


def is_ready(connection: socket.socket, event: int) -> bool:
    """Whether the connection can be read (POLLIN) or written (POLLOUT) now."""
    waiting = select.poll()  # select() takes no file beyond the 1,024th
    waiting.register(connection, event)
    return bool(waiting.poll(0))


def cut(environ: Mapping[str, Any]) -> bool:
    """Break the connection, so that a reply under way is known for broken; False where the socket is not lent."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client was faster.
        return True
    return True
