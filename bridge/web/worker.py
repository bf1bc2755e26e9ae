"""The kind of gunicorn worker that serves the app."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from select import POLLOUT
from selectors import EVENT_READ, EVENT_WRITE
from socket import SHUT_RD, SHUT_WR, socket

from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker  # type: ignore[import-untyped]

from bridge.config import Settings
from bridge.web.arrival import Arrival, Gathered
from bridge.web.hangup import is_ready

SCARCE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE = 0.05
# Larger ones cost fewer switches between threads.
PIECE = 1 << 18
# Of requests that are not whole yet, in all, beside one of the largest.
MOST_HELD = 1 << 27
# Seconds that a client has to read the end of a reply and to close (RFC 9112, 9.6).
LEAVE = 2.0
# Seconds between two looks at who is late, and that a new connection has at least.
LOOK = 1.0


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's own with threads, but that no client can hold up others.

    A request gets a thread when all of it is there, and the thread never reads from the connection. Nor does it find no
    room for the reply because those before it were not read. For a client to close its end nobody waits. Where not one
    more connection can be opened, whoever wants to connect waits until there is a place; gunicorn's own would end with
    all its turns.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.arriving: dict[TConn, Arrival] = {}
        self.leaving: dict[TConn, float] = {}
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
        elif self.watch(conn, self.on_piece):
            self.arriving[conn] = Arrival(time.monotonic(), self.settings.max_body)
            if conn.parser is not None and (ahead := conn.parser.unreader.take_buffered()):
                self.take(conn, ahead)

    def watch(self, conn: TConn, callback: Callable[[TConn, socket], None]) -> bool:
        """Whether the connection is still there; `callback` is called when there is something to read."""
        try:
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, EVENT_READ, partial(callback, conn))
        except (OSError, ValueError):
            self.close(conn)
            return False
        return True

    def close(self, conn: TConn) -> None:
        self.nr_conns -= 1
        conn.close()

    def on_piece(self, conn: TConn, sock: socket) -> None:
        if conn not in self.arriving:  # it was cut off since, for what another one sent
            return
        try:
            piece = sock.recv(PIECE)
        except BlockingIOError:
            return
        except OSError:
            self.forget(conn)
            self.close(conn)
            return
        if piece:
            self.take(conn, piece)
        else:
            self.cut_off(conn)

    def take(self, conn: TConn, piece: bytes) -> None:
        arrival = self.arriving[conn]
        arrival.take(piece, time.monotonic())
        self.held += len(piece)
        if arrival.wants_go_ahead:
            arrival.wants_go_ahead = False
            with suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.whole and has_room(conn.sock):
            self.hand_over(conn)
        elif arrival.whole:
            self.poller.modify(conn.sock, EVENT_WRITE, partial(self.on_room, conn))
        elif self.held > MOST_HELD + self.settings.max_body:
            self.cut_off(max(self.arriving, key=lambda one: len(self.arriving[one].received)))

    def on_room(self, conn: TConn, sock: socket) -> None:
        if conn in self.arriving:
            self.hand_over(conn)

    def cut_off(self, conn: TConn) -> None:
        """Nothing more is waited for: the app says what is missing, if the request came as far as to be one.

        From who is sending just now more is read (see on_rest): it would wait for room, and not see the reply.
        """
        if self.arriving[conn].received and has_room(conn.sock):
            self.hand_over(conn)
        else:
            self.forget(conn)
            self.close(conn)

    def hand_over(self, conn: TConn) -> None:
        conn.arrived = Gathered(self.forget(conn).received)
        conn.data_ready = True
        try:
            super().enqueue_req(conn)
        except RuntimeError as fault:
            self.log.warning("a request is not served: %s", fault)
            self.close(conn)

    def forget(self, conn: TConn) -> Arrival:
        self.poller.unregister(conn.sock)
        arrival = self.arriving.pop(conn)
        self.held -= len(arrival.received)
        return arrival

    def handle(self, conn: TConn) -> object:
        """In a thread. Where the request ends too early, nobody knows where the next one would begin."""
        if self.cfg.is_ssl:
            return super().handle(conn)
        arrived: Gathered = conn.arrived
        conn.init()
        conn.parser.unreader.sock = arrived
        kept = super().handle(conn)
        rest = arrived.rest()
        if not kept or arrived.ran_out:
            return False
        conn.parser.unreader.buf.seek(0, 2)
        conn.parser.unreader.buf.write(rest)
        return kept

    def handle_request(self, req: Request, conn: TConn) -> object:
        """gunicorn's own says "go on" once more here, even before it refuses a body by its length."""
        if not self.cfg.is_ssl:
            req._expected_100_continue = False
        return super().handle_request(req, conn)

    def finish_request(self, conn: TConn, done: Future[object]) -> None:
        """gunicorn's own waits here until the client has closed, and everybody with it."""
        if self.cfg.is_ssl or (not done.cancelled() and not done.exception() and done.result()):
            super().finish_request(conn, done)
            return
        with suppress(OSError):
            conn.sock.shutdown(SHUT_WR)
        if self.watch(conn, self.on_rest):
            self.leaving[conn] = time.monotonic() + LEAVE

    def on_rest(self, conn: TConn, sock: socket) -> None:
        """What a client still sends is thrown away until it closes, so that it is not cut off from the reply's end."""
        try:
            if sock.recv(PIECE):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self.leave(conn)

    def leave(self, conn: TConn) -> None:
        del self.leaving[conn]
        self.poller.unregister(conn.sock)
        self.close(conn)

    def murder_pending(self) -> None:
        """Called between events. Who is too slow is cut off, where all places are taken who has not come at once."""
        super().murder_pending()
        now = time.monotonic()
        if now - self.looked < LOOK:
            return
        self.looked = now
        for conn in [conn for conn, until in self.leaving.items() if now > until]:
            self.leave(conn)
        silence = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        pause = self.settings.read_timeout
        if self.nr_conns >= self.worker_connections:
            silence = pause = LOOK
        for conn in [conn for conn, one in self.arriving.items() if one.is_overdue(now, pause, silence)]:
            with suppress(OSError):
                conn.sock.shutdown(SHUT_RD)  # its place is free with the reply
            self.cut_off(conn)


def has_room(sock: socket) -> bool:
    """Whether a reply can be written; not where a client has left many unread."""
    return is_ready(sock, POLLOUT)
