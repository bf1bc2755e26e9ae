"""Writes replies in as few pieces as possible. Each piece costs a system call, for which the thread lets others run."""

from __future__ import annotations

import time
from functools import lru_cache

from gunicorn.http import wsgi  # type: ignore[import-untyped]
from gunicorn.util import http_date  # type: ignore[import-untyped]


class ReplyWriter(wsgi.Response):  # type: ignore[misc]
    """gunicorn's Response, which decides how a reply is framed, and checks its headers. The head is sent together with
    the first piece of the body.
    """

    headers_sent: bool
    _unsent_head = b""
    _is_behind = False  # the socket has kept what the client did not take of a piece
    _fault: OSError | None = None

    def send_headers(self) -> None:
        """Makes the head. write() and close() send it."""
        if not self.headers_sent:
            lines = [*self.default_headers(), *[f"{name}: {value}\r\n" for name, value in self.headers], "\r\n"]
            self._unsent_head = "".join(lines).encode("latin-1")
            self.headers_sent = True

    def default_headers(self) -> list[str]:
        """Returns the lines that gunicorn returns."""
        major, minor = self.req.version
        return [
            f"HTTP/{major}.{minor} {self.status}\r\nServer: {self.version}\r\nDate: {_date(int(time.time()))}\r\n",
            f"Connection: {'upgrade' if self.upgrade else 'close' if self.should_close() else 'keep-alive'}\r\n",
            "Transfer-Encoding: chunked\r\n" if self.chunked else "",
        ]

    def write(self, arg: bytes) -> None:
        """Writes a piece. An empty one sends what is left of earlier pieces. Raises the fault of `write_at_once`."""
        self._raise_fault()
        if self.chunked and self.headers_sent and isinstance(arg, bytes) and arg:  # a further frame of a stream
            self.sock.sendall(self._framed(arg))
        else:
            super().write(arg)
            self._send(b"")  # the head, if nothing follows it now

    def write_at_once(self, piece: bytes) -> bool:
        """Writes a piece in another thread than the request's, which must wait meanwhile. Never waits for the client,
        and keeps a fault for the next write. Returns whether the client took the whole piece.
        """
        if piece and not self._fault:
            try:
                self.send_headers()
                self._is_behind = not self.sock.send_at_once(self._with_head(self._framed(piece)))
            except OSError as fault:
                self._fault = fault
        return not (self._is_behind or self._fault)

    def close(self) -> None:
        self._raise_fault()
        self.send_headers()
        self._send(b"0\r\n\r\n" if self.chunked else b"")

    def _raise_fault(self) -> None:
        if self._fault:
            raise self._fault

    def _emit_body(self, data: bytes) -> None:
        self._send(self._framed(data))

    def _framed(self, data: bytes) -> bytes:
        return b"%X\r\n%b\r\n" % (len(data), data) if self.chunked else data

    def _with_head(self, data: bytes) -> bytes:
        """Returns the data behind the head, if that was not sent yet."""
        head, self._unsent_head = self._unsent_head, b""
        return head + data if head else data

    def _send(self, data: bytes) -> None:
        data = self._with_head(data)
        if data or self._is_behind:
            self._is_behind = False
            self.sock.sendall(data)


@lru_cache(maxsize=1)
def _date(second: int) -> str:
    return str(http_date(second))
