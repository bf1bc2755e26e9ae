"""The socket by which a thread sends a reply: the thread does not wait for a client that does not read."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from bridge.web.pace import Pace

# Seconds after which a write to a client that reads nothing fails, where a thread waits for the client.
WRITE_SECONDS = 60
# Between two looks at the clock.
POLL_MILLISECONDS = 1_000


class ReplySocket(socket.socket):
    """Takes over a client's socket. sendall() sends what the client takes at once, and keeps the rest in `unsent`.
    The event loop sends that later. While `waits` is True, sendall() waits until the client has taken everything.
    It never blocks: gunicorn would change that, and change it back, for each request.
    """

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        super().setblocking(False)
        self.unsent = bytearray()
        self.waits = False

    def setblocking(self, flag: bool, /) -> None:
        """Does nothing."""

    def sendall(self, data: Any, flags: int = 0, /) -> None:
        if not self.send_at_once(data) and self.waits:
            self._wait_and_send()

    def send_at_once(self, data: Any) -> bool:
        """Sends what the client takes now, and keeps the rest. Returns whether nothing is kept."""
        if self.unsent:
            self.unsent += data
            self.send_unsent()
            return not self.unsent
        try:
            sent = self.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self.unsent += data[sent:]
        return not self.unsent

    def _wait_and_send(self) -> None:
        pace = Pace(time.monotonic())
        while self.unsent:
            waiting = select.poll()
            waiting.register(self, select.POLLOUT)
            waiting.poll(POLL_MILLISECONDS)
            pace.note(self.send_unsent(), now := time.monotonic())
            if self.unsent and pace.is_overdue(now, WRITE_SECONDS):
                self.unsent.clear()
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    def send_unsent(self) -> int:
        """Sends as much as the client takes now. Returns how many bytes that were."""
        sent = 0
        with suppress(BlockingIOError):
            sent = self.send(self.unsent)
        del self.unsent[:sent]
        return sent


def wait_for_client(environ: Mapping[str, Any]) -> None:
    """Makes the thread wait until the client has taken the reply. For turns only: their number is limited."""
    connection = environ.get("gunicorn.socket")
    if isinstance(connection, ReplySocket):
        connection.waits = True
