"""A server that answers every request with bytes of the test, valid or not, and then hangs up or waits."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.waiting import SOON

WAIT = threading.Event()


class RawServer:
    """Answers each request with `pieces`, one by one.

    A number among them is a pause in seconds; WAIT keeps the connection open until the end of the test, another event
    until it is set. `requests` are the requests as they came, head and body.
    """

    def __init__(self, pieces: Iterable[bytes | float | threading.Event]) -> None:
        self.requests: list[bytes] = []
        self._pieces = list(pieces)
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join(SOON)
        self._listening.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the client has gone
            self.requests.append(read_request(connection))
            for piece in self._pieces:
                if isinstance(piece, bytes):
                    connection.sendall(piece)
                elif isinstance(piece, threading.Event) and piece is not WAIT:
                    piece.wait(SOON)
                else:
                    self._over.wait(piece if isinstance(piece, float) else None)


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].partition(b":")[2]) - len(body) if lengths else 0
    while missing > 0:
        more = _more(connection)
        data, missing = data + more, missing - len(more)
    return data


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("the client left before its request was complete")
    return data
