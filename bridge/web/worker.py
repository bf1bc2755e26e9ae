"""The gunicorn worker that serves the app, and how it reads requests from its connections."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property, partial
from select import POLLOUT
from selectors import EVENT_READ, EVENT_WRITE
from socket import SHUT_RD, SHUT_WR, socket
from typing import cast

from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker  # type: ignore[import-untyped]

from bridge.config import Settings
from bridge.web.arrival import Arrival, ReceivedBytes
from bridge.web.hangup import is_ready

# accept() fails with these errors while the worker or the system can't open another connection.
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
# Seconds until accept() is tried again.
ACCEPT_PAUSE = 0.05
# Bytes read at once. Larger pieces cost fewer switches between threads.
PIECE = 1 << 18
# Bytes of incomplete requests that a worker keeps, in addition to one request of the largest size.
MAX_BUFFERED = 1 << 27
# Seconds that a client has to read the end of a reply and to close the connection (RFC 9112, 9.6).
LINGER = 2.0
# Seconds between two searches for slow clients. A new connection gets at least this long.
CHECK_INTERVAL = 1.0


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker, changed so that clients that send slowly or not at all do not delay other clients.
    - A request gets a thread when all of it has arrived and its reply can be written. So no thread waits for a client.
    - The event loop does not wait until a client closes its connection.
    - While no further connection can be opened, new clients wait. gunicorn's own worker would end, with all its turns.
    Over TLS the arriving bytes are encrypted, so gunicorn reads the requests itself then.
    tests/web/test_gunicorn_hooks.py lists all parts of gunicorn on which this class depends.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.receiving: dict[TConn, Arrival] = {}  # connections whose request has not arrived completely
        self.lingering: dict[TConn, float] = {}  # connections after their last reply, and when they are closed
        self.buffered = 0  # bytes of all requests in `receiving`
        self.last_check = 0.0  # when slow clients were last searched for

    @cached_property
    def settings(self) -> Settings:
        return cast(Settings, self.wsgi.extensions["parts"].settings)

    def accept(self, listener: socket) -> None:
        """Accepts a new connection. If no further connection can be opened, waits, and the client waits, too."""
        try:
            super().accept(listener)
        except OSError as fault:
            if fault.errno not in OUT_OF_RESOURCES:
                raise
            self.log.warning("a connection has to wait: %s", fault.strerror)
            time.sleep(ACCEPT_PAUSE)

    def enqueue_req(self, conn: TConn) -> None:
        """Starts to receive a request on a connection that is new, or that was kept and has bytes again.
        The parser of a kept connection may have read the first bytes of this request together with the previous one.
        """
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
        elif self.watch_connection(conn, self.on_readable):
            self.receiving[conn] = Arrival(time.monotonic(), self.settings.max_body)
            if conn.parser is not None and (ahead := conn.parser.unreader.take_buffered()):
                self.receive_bytes(conn, ahead)

    def watch_connection(self, conn: TConn, callback: Callable[[TConn, socket], None]) -> bool:
        """Makes the event loop call `callback` when bytes arrive or the client leaves. Closes a broken connection."""
        try:
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, EVENT_READ, partial(callback, conn))
        except (OSError, ValueError):
            self.close_connection(conn)
            return False
        return True

    def stop_watching(self, conn: TConn) -> bytearray:
        """Takes the connection out of the event loop, and returns the bytes of its request that have arrived."""
        self.poller.unregister(conn.sock)
        self.lingering.pop(conn, None)
        arrival = self.receiving.pop(conn, None)
        received = arrival.received if arrival else bytearray()
        self.buffered -= len(received)
        return received

    def drop_connection(self, conn: TConn) -> None:
        self.stop_watching(conn)
        self.close_connection(conn)

    def close_connection(self, conn: TConn) -> None:
        """Closes a connection that the event loop does not watch. The worker may accept another connection then."""
        self.nr_conns -= 1
        conn.close()

    def on_readable(self, conn: TConn, sock: socket) -> None:
        """Reads the bytes that have arrived. If the client has closed the connection, its request is cut off."""
        if conn not in self.receiving:  # the request was cut off in this round of events, to free memory
            return
        try:
            piece = sock.recv(PIECE)
        except BlockingIOError:
            pass
        except OSError:
            self.drop_connection(conn)
        else:
            if piece:
                self.receive_bytes(conn, piece)
            else:
                self.cut_off_request(conn)

    def receive_bytes(self, conn: TConn, piece: bytes) -> None:
        """Adds bytes to the connection's request. Gives a complete request to a thread when its reply can be written.
        If too many bytes of incomplete requests are kept, cuts off the largest of these requests.
        """
        arrival = self.receiving[conn]
        arrival.add(piece, time.monotonic())
        self.buffered += len(piece)
        if arrival.expects_continue:
            arrival.expects_continue = False
            with suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.is_complete and can_write(conn.sock):
            self.give_to_thread(conn)
        elif arrival.is_complete:
            self.poller.modify(conn.sock, EVENT_WRITE, partial(self.on_writable, conn))
        elif self.buffered > MAX_BUFFERED + self.settings.max_body:
            self.cut_off_request(max(self.receiving, key=lambda one: len(self.receiving[one].received)))

    def on_writable(self, conn: TConn, sock: socket) -> None:
        if conn in self.receiving:
            self.give_to_thread(conn)

    def cut_off_request(self, conn: TConn) -> None:
        """Gives the app the part of a request that has arrived, so that the app answers with an error.
        Without such a part, or if no reply can be written, the connection is closed without a reply.
        """
        if self.receiving[conn].received and can_write(conn.sock):
            self.give_to_thread(conn)
        else:
            self.drop_connection(conn)

    def give_to_thread(self, conn: TConn) -> None:
        received = ReceivedBytes(self.stop_watching(conn))
        try:
            served = self.tpool.submit(self.serve_in_thread, conn, received)
        except RuntimeError as fault:
            self.log.warning("a request is not served: %s", fault)
            self.close_connection(conn)
        else:
            served.add_done_callback(partial(self.method_queue.defer, self.on_served, conn))

    def serve_in_thread(self, conn: TConn, received: ReceivedBytes) -> bool:
        """Serves a request in a thread of the pool. Returns whether the connection can be used for another request.
        After a request that ended too early, returns False: it is unknown where the next request begins.
        """
        conn.init()
        unreader = conn.parser.unreader
        unreader.sock = received
        is_kept = self.handle(conn)
        rest = received.take_rest()
        if not is_kept or received.ended_early:
            return False
        unreader.unread(unreader.take_buffered() + rest)
        return True

    def handle_request(self, req: Request, conn: TConn) -> object:
        """Serves a parsed request. Without TLS, gunicorn must not send "100 Continue": receive_bytes() has sent it.
        gunicorn would also send it for a body that is too large.
        """
        if not self.cfg.is_ssl:
            req._expected_100_continue = False
        return super().handle_request(req, conn)

    def on_served(self, conn: TConn, served: Future[bool]) -> None:
        """Keeps the connection for another request, or ends it: on_rest() reads from it for at most LINGER seconds.
        gunicorn's finish_request() would keep all clients waiting until this client closes the connection.
        """
        if not served.exception() and served.result():
            self.finish_request(conn, served)
            return
        with suppress(OSError):
            conn.sock.shutdown(SHUT_WR)
        if self.watch_connection(conn, self.on_rest):
            self.lingering[conn] = time.monotonic() + LINGER

    def on_rest(self, conn: TConn, sock: socket) -> None:
        """Ignores what the client still sends after its last reply, and closes the connection when the client has.
        If the worker closed it first, the client could lose the end of the reply.
        """
        with suppress(OSError):  # after a broken connection's error, the next recv() reports the end
            if not sock.recv(PIECE):
                self.drop_connection(conn)

    def murder_pending(self) -> None:
        """Cuts off requests that arrive too slowly, and closes lingering connections. gunicorn calls it between events.
        While the worker has as many connections as it may have, a client may pause for CHECK_INTERVAL only.
        """
        super().murder_pending()
        now = time.monotonic()
        if now - self.last_check < CHECK_INTERVAL:
            return
        self.last_check = now
        for conn in [conn for conn, until in self.lingering.items() if now > until]:
            self.drop_connection(conn)
        silence = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        pause = self.settings.read_timeout
        if self.nr_conns >= self.worker_connections:
            silence = pause = CHECK_INTERVAL
        for conn in [conn for conn, one in self.receiving.items() if one.is_overdue(now, pause, silence)]:
            with suppress(OSError):
                conn.sock.shutdown(SHUT_RD)  # so that the connection ends as soon as the reply is written
            self.cut_off_request(conn)


def can_write(sock: socket) -> bool:
    """Returns whether a reply can be written now: the client has read enough of its earlier replies."""
    return is_ready(sock, POLLOUT)
