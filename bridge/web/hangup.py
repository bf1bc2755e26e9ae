"""Finds out from a client's socket whether the client is still connected, and breaks connections.
A write does not show it: the first write after the client has left succeeds, only the second one fails.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from bridge.trace import bind_to_current_trace

# Seconds between two looks at a client's socket.
TICK = 0.5


def client_is_gone(environ: Mapping[str, Any]) -> bool:
    """Returns whether the client has left. False where this is unknown: over TLS, and without gunicorn."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket) or isinstance(connection, ssl.SSLSocket):
        return False
    try:
        return is_ready(connection, select.POLLIN) and connection.recv(1, socket.MSG_PEEK) == b""
    except (OSError, ValueError):
        return True


class ClientLeft(threading.Event):
    """Is set when a request's client has left. Looks at the client's socket whenever it is asked."""

    def __init__(self, environ: Mapping[str, Any]) -> None:
        super().__init__()
        self._environ = environ

    def is_set(self) -> bool:
        if not super().is_set() and client_is_gone(self._environ):
            self.set()
        return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(timeout) or self.is_set()


@contextmanager
def if_client_leaves(environ: Mapping[str, Any], act: Callable[[], None]) -> Iterator[None]:
    """Calls `act` in another thread if the client leaves while the `with` block runs, and waits for its end. If no
    thread can be started, only a later write shows that the client has left.
    """
    over = threading.Event()

    def watch(connection: Mapping[str, Any]) -> None:
        while not over.wait(TICK):
            if client_is_gone(connection):
                act()
                return

    watching = threading.Thread(target=bind_to_current_trace(watch), args=(environ,), name="hangup", daemon=True)
    with suppress(RuntimeError):  # no thread is left
        watching.start()
    try:
        yield
    finally:
        over.set()
        if watching.ident is not None:
            watching.join()


def is_ready(connection: socket.socket, event: int) -> bool:
    waiting = select.poll()  # select() fails for file numbers above 1,023
    waiting.register(connection, event)
    return bool(waiting.poll(0))


def break_connection(environ: Mapping[str, Any]) -> bool:
    """Breaks the connection, so that the client sees an incomplete reply. False under another server than gunicorn."""
    connection = environ.get("gunicorn.socket")
    if not isinstance(connection, socket.socket):
        return False
    with suppress(OSError):  # the client has broken the connection already
        connection.shutdown(socket.SHUT_RDWR)
    return True
