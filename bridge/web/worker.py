"""The kind of gunicorn worker that serves the app."""

from __future__ import annotations

import errno
import time
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ
from socket import SHUT_RD, socket

from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker  # type: ignore[import-untyped]

from bridge.config import Settings
from bridge.web.arrival import Arrival

SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE = 0.05
PIECE = 1 << 16
# Of requests that are not whole yet, in all. Beyond, threads read the rest.
MOST_HELD = 1 << 28


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's own with threads, but for two things.

    It gives a request to a thread when all of it is there: clients that send theirs slowly, or never finish, take
    no thread from others. And where it can't open one more connection, whoever wants to connect waits until there is a
    place; gunicorn's own would end with all its turns.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.arriving: dict[TConn, Arrival] = {}
        self.held = 0
        self.looked = 0.0

    @property
    def settings(self) -> Settings:
        found: Settings = self.wsgi.extensions["parts"].settings
        return found

    def accept(self, listener: socket) -> None:
        try:
            super().accept(listener)
        except OSError as fault:
            if fault.errno not in SCARCE:
                raise
            self.log.warning("a connection has to wait: %s", fault.strerror)
            time.sleep(PAUSE)

    def enqueue_req(self, conn: TConn) -> None:
        """All that gunicorn would give to a thread comes by here: new connections, and kept ones that can be read."""
        if self.cfg.is_ssl:  # then what arrives is not yet a request
            super().enqueue_req(conn)
            return
        now = time.monotonic()
        self.arriving[conn] = Arrival(now, self.settings.max_body)
        conn.sock.setblocking(False)
        self.poller.register(conn.sock, EVENT_READ, partial(self.on_piece, conn))
        if conn.parser is not None and (ahead := conn.parser.unreader.take_buffered()):
            self.take(conn, ahead)

    def on_piece(self, conn: TConn, sock: socket) -> None:
        try:
            piece = sock.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self.drop(conn)
            return
        if piece:
            self.take(conn, piece)
        elif self.arriving[conn].received:
            self.hand_over(conn)  # nothing more comes, so that no thread waits: the app says what is missing
        else:
            self.drop(conn)

    def take(self, conn: TConn, piece: bytes) -> None:
        arrival = self.arriving[conn]
        arrival.take(piece, time.monotonic())
        self.held += len(piece)
        if arrival.wants_go_ahead:
            arrival.wants_go_ahead = False
            with suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.whole or self.held > MOST_HELD:
            self.hand_over(conn)

    def hand_over(self, conn: TConn) -> None:
        conn.arrived = bytes(self.forget(conn).received)
        conn.data_ready = True
        super().enqueue_req(conn)

    def handle(self, conn: TConn) -> object:
        """In a thread: the parser begins with what is there already."""
        if not self.cfg.is_ssl:
            conn.init()
            conn.parser.unreader.unread(conn.arrived)
            conn.arrived = b""
        return super().handle(conn)

    def drop(self, conn: TConn) -> None:
        self.forget(conn)
        self.nr_conns -= 1
        conn.close()

    def forget(self, conn: TConn) -> Arrival:
        self.poller.unregister(conn.sock)
        arrival = self.arriving.pop(conn)
        self.held -= len(arrival.received)
        return arrival

    def murder_pending(self) -> None:
        """Called between events: now and then, whoever is too slow is cut off."""
        super().murder_pending()
        now = time.monotonic()
        if now - self.looked < 1:
            return
        self.looked = now
        silence = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        for conn, arrival in list(self.arriving.items()):
            if not arrival.is_overdue(now, self.settings.read_timeout, silence):
                continue
            if arrival.received:
                with suppress(OSError):
                    conn.sock.shutdown(SHUT_RD)  # so that the app finds its end, and says that it was too slow
                self.hand_over(conn)
            else:
                self.drop(conn)
