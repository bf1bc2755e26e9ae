"""The gunicorn worker that serves the app, and how it reads requests from its connections."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from selectors import EVENT_READ, EVENT_WRITE
from socket import SHUT_RD, SHUT_WR, socket
from typing import Any, cast

from gunicorn.http import wsgi  # type: ignore[import-untyped]
from gunicorn.http.body import LengthReader  # type: ignore[import-untyped]
from gunicorn.http.message import Request  # type: ignore[import-untyped]
from gunicorn.util import close_graceful  # type: ignore[import-untyped]
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker  # type: ignore[import-untyped]

from bridge.config import Settings
from bridge.thread_pool import ThreadPool
from bridge.web.arrival import Arrival, ArrivedBody, ReceivedBytes
from bridge.web.body_limits import BODY_LIMITS, BodyLimits
from bridge.web.pace import Pace
from bridge.web.piece_sender import WRITER
from bridge.web.reply_socket import ReplySocket
from bridge.web.reply_writer import ReplyWriter
from bridge.web.room import ROOM, Room, no_room_error

# accept() fails with these errors if the listening socket itself is broken. Only a new worker has another one.
LISTENER_IS_BROKEN = (errno.EBADF, errno.EINVAL, errno.ENOTSOCK)
# Seconds until accept() is tried again.
ACCEPT_PAUSE = 0.05
# Bytes read at once. Larger pieces cost fewer switches between threads.
PIECE = 1 << 18
# Seconds that a client has to read the end of a reply and to close the connection (RFC 9112, 9.6).
LINGER = 2.0
# Seconds that it has if it still sends its request: many clients look for the reply only after that.
LONGEST_LINGER = 30.0
# Seconds between two signs of life for the main process, which waits for them for a minute.
LIFE_INTERVAL = 1.0
# What a client gets that speaks TLS: most then say "wrong version number", for which people find the reason.
NO_TLS = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
# Seconds between two hints in the log about clients that speak TLS.
HINT_INTERVAL = 60.0
# Seconds between two searches for slow clients. A new connection gets at least this long.
CHECK_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class Unread:
    """A reply of which the client has not taken everything. `is_kept`: the connection may be used again after it."""

    pace: Pace
    is_kept: bool


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threaded worker, changed so that clients that send or read slowly do not delay other clients.
    - A request gets a thread when all of it has arrived, or when its head is enough to refuse it. The event loop sends
      what the client does not take of the reply at once. So no thread waits for a client, except for that of a turn.
    - The thread of a request itself has the connection watched for the next one. The event loop is not woken for that.
    - The event loop does not wait until a client closes its connection. One that speaks TLS is refused at once.
    - While too many bytes are held, the largest incomplete requests are refused.
    - While no further connection can be opened, new clients wait. If the worker fails to handle a connection, it closes
      this connection. gunicorn's own worker would end, with all its turns.
    Over TLS the arriving bytes are encrypted, so gunicorn reads the requests itself then.
    tests/web/test_gunicorn_hooks.py lists all parts of gunicorn on which this class depends.
    """

    alive: bool

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.watched: set[TConn] = set()  # connections for which the event loop calls a method of this class
        self.receiving: dict[TConn, Arrival] = {}  # connections whose request has not arrived completely
        self.sending: dict[TConn, Unread] = {}  # connections whose client has not taken the whole reply
        self.lingering: dict[TConn, Pace] = {}  # connections after their last reply, which the client may not have read
        self.last_check = 0.0  # when slow clients were last searched for
        self.last_sign = 0.0  # when the main process was last told that this worker lives
        self.next_hint = 0.0  # from when on the log gets another hint about TLS

    @cached_property
    def settings(self) -> Settings:
        return cast(Settings, self.wsgi.extensions["parts"].settings)

    @cached_property
    def room(self) -> Room:
        return cast(Room, self.wsgi.extensions[ROOM])

    @cached_property
    def buffer(self) -> memoryview:
        """What has arrived on a connection is read into it first. A new buffer for each read would cost more."""
        return memoryview(bytearray(PIECE))

    @cached_property
    def body_limits(self) -> BodyLimits:
        return cast(BodyLimits, self.wsgi.extensions[BODY_LIMITS])

    def run(self) -> None:
        """Runs the event loop. gunicorn's settings do not change any more, and are read tens of times a request. So
        they become plain attributes, which Python finds at once.
        """
        self.cfg.__dict__.update({name: setting.get() for name, setting in self.cfg.settings.items()})
        super().run()

    def get_thread_pool(self) -> ThreadPool:
        return ThreadPool(self.cfg.threads, "request")

    def notify(self) -> None:
        """Gives a sign of life, once in LIFE_INTERVAL. gunicorn asks for one in every round of events."""
        now = time.monotonic()
        if now - self.last_sign >= LIFE_INTERVAL:
            self.last_sign = now
            super().notify()

    def accept(self, listener: socket) -> None:
        """Accepts a new connection. If that fails, as it does while no other file can be opened, waits a moment."""
        try:
            super().accept(listener)
        except OSError as fault:
            if fault.errno in LISTENER_IS_BROKEN:
                raise
            self.log.warning("a connection has to wait: %s", fault.strerror)
            time.sleep(ACCEPT_PAUSE)

    def enqueue_req(self, conn: TConn) -> None:
        """Starts to receive a request on a connection that is new, or that was kept and has bytes again.
        The parser of a kept connection may have read the first bytes of this request together with the previous one.
        """
        if self.cfg.is_ssl:
            super().enqueue_req(conn)
        else:
            self.call_safely(self.start_receiving, conn)

    def call_safely(self, work: Callable[..., None], conn: TConn, *values: object) -> None:
        """Calls a method for a connection. If it fails, closes this connection: the worker's other turns go on.
        So such a method may give the connection to a thread or close it only as its last step.
        """
        try:
            work(conn, *values)
        except Exception:
            self.log.exception("a connection is closed: the worker failed to handle it")
            self.drop_connection(conn)

    def start_receiving(self, conn: TConn) -> None:
        """Receives what has arrived already: usually the whole request, which the event loop need not watch then."""
        if not isinstance(conn.sock, ReplySocket):
            conn.sock = ReplySocket(conn.sock)
        self.receiving[conn] = Arrival(time.monotonic(), self.body_limits.largest_body)
        if conn.parser is not None and (ahead := conn.parser.unreader.take_buffered()):
            self.receive_bytes(conn, ahead)
        if conn in self.receiving:
            self.on_readable(conn, conn.sock)
        if conn in self.receiving and not self.watch_connection(conn, EVENT_READ, self.on_readable):
            self.room.remove(len(self.receiving.pop(conn).received))

    def watch_connection(self, conn: TConn, event: int, callback: Callable[[TConn, socket], None]) -> bool:
        """Makes the event loop call `callback` at the event, or when the client leaves. Closes a broken connection."""
        try:
            self.poller.register(conn.sock, event, partial(self.call_safely, callback, conn))
        except (OSError, ValueError):
            self.close_connection(conn)
            return False
        self.watched.add(conn)
        return True

    def stop_watching(self, conn: TConn) -> None:
        """Takes the connection out of the event loop."""
        if conn in self.watched:
            self.watched.remove(conn)
            self.poller.unregister(conn.sock)
        self.lingering.pop(conn, None)
        if arrival := self.receiving.pop(conn, None):
            self.room.remove(len(arrival.received))
        if self.sending.pop(conn, None):
            self.room.remove(len(conn.sock.unsent))

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
            size = sock.recv_into(self.buffer)
        except BlockingIOError:
            pass
        except OSError:
            self.drop_connection(conn)
        else:
            if size:
                self.receive_bytes(conn, self.buffer[:size])
            else:
                self.cut_off_request(conn)

    def receive_bytes(self, conn: TConn, piece: bytes | memoryview) -> None:
        """Adds bytes to the connection's request, and gives the request to a thread when it is complete."""
        arrival = self.receiving[conn]
        self.room.add(len(piece))
        arrival.add(piece, time.monotonic())
        if arrival.expects_continue:
            arrival.expects_continue = False
            with suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.is_tls:
            self.refuse_tls(conn)
        elif arrival.is_complete:
            self.give_to_thread(conn)
        else:
            self.make_room()

    def refuse_tls(self, conn: TConn) -> None:
        """Ends a connection of a client that speaks https to this http port. Each would wait for the other's words."""
        now = time.monotonic()
        if now >= self.next_hint:
            self.next_hint = now + HINT_INTERVAL
            self.log.warning(
                "a client speaks https to this http port: write http:// instead of https:// in the base URL that the"
                " client has, or put a proxy with TLS in front of the bridge"
            )
        self.stop_watching(conn)
        with suppress(OSError):
            conn.sock.send(NO_TLS)
        self.end_connection(conn)

    def make_room(self) -> None:
        """While too many bytes are held, refuses the largest incomplete request, or gives up the largest reply."""
        while (most := self.room.most_for_one) < sys.maxsize:
            sizes = {conn: len(arrival.received) for conn, arrival in self.receiving.items()}
            sizes |= {conn: len(conn.sock.unsent) for conn in self.sending}
            largest = max(sizes, key=sizes.__getitem__, default=None)
            if largest is None or sizes[largest] <= most:
                return
            self.call_safely(self.refuse_request if largest in self.receiving else self.drop_connection, largest)

    def refuse_request(self, conn: TConn) -> None:
        self.room.remove(self.receiving[conn].refuse_body(no_room_error()))
        self.cut_off_request(conn)

    def cut_off_request(self, conn: TConn) -> None:
        """Gives the app the part of a request that has arrived, so that the app answers with an error.
        Without such a part, the connection is closed without a reply.
        """
        if self.receiving[conn].received:
            self.give_to_thread(conn)
        else:
            self.drop_connection(conn)

    def give_to_thread(self, conn: TConn) -> None:
        arrival = self.receiving[conn]
        self.stop_watching(conn)
        size = len(arrival.received)
        received = ReceivedBytes(arrival.received, arrival.refusal)
        self.room.add(size)
        try:
            self.tpool.run(partial(self.serve_in_thread, conn, received, size))
        except RuntimeError as fault:
            self.room.remove(size)
            self.log.warning("a request is not served: %s", fault)
            self.close_connection(conn)

    def serve_in_thread(self, conn: TConn, received: ReceivedBytes, size: int) -> None:
        """Serves a request of `size` bytes, and keeps its connection if it can. The event loop does what is rare."""
        is_kept = False
        try:
            is_kept = self.serve(conn, received)
        except BaseException:  # of any kind: the connection needs an end
            self.log.exception("a request is not served")
        self.room.remove(size)  # the bytes are not held any more
        if conn.sock.unsent:
            self.method_queue.defer(self.call_safely, self.send_rest, conn, is_kept)
            return
        try:
            self.keep_or_end(conn, is_kept)
        except Exception:
            self.log.exception("a connection is closed: the worker failed to handle it")
            self.method_queue.defer(self.drop_connection, conn)

    def serve(self, conn: TConn, received: ReceivedBytes) -> bool:
        """Serves a request in a thread of the pool. Returns whether the connection can be used for another request.
        After a request that ended too early, returns False: it is unknown where the next request begins.
        """
        conn.init()
        conn.sock.waits = False
        unreader = conn.parser.unreader
        unreader.sock = received
        is_kept = self.handle(conn)
        early = unreader.take_buffered() + received.take_rest()
        if not is_kept or received.ended_early:
            return False
        if early:
            unreader.unread(early)
        return True

    def handle_request(self, req: Request, conn: TConn) -> object:
        """Serves a parsed request. Without TLS, gunicorn must not send "100 Continue": receive_bytes() has sent it.
        gunicorn would also send it for a body that is too large. After a body that was not read, the connection ends.
        """
        if self.cfg.is_ssl:
            return super().handle_request(req, conn)
        req._expected_100_continue = False
        if conn.parser.unreader.sock.refusal:
            req.force_close()
        writer, environ = wsgi.create(req, conn.sock, conn.client, conn.server, self.cfg, ReplyWriter)
        environ["wsgi.multithread"] = True
        environ[WRITER] = writer
        if isinstance(req.body.reader, LengthReader):
            environ["wsgi.input"] = ArrivedBody(req.body, conn.parser.unreader)
        self.count_request(writer)
        try:
            self.write_reply(writer, environ)
        except OSError:
            raise
        except (Exception, SystemExit):
            if writer.headers_sent:  # it is too late for another status
                self.log.exception("Error handling request")
                close_graceful(conn.sock)
                raise StopIteration from None
            raise
        return not writer.should_close()

    def count_request(self, writer: ReplyWriter) -> None:
        """Has the connection closed after this reply if the worker ends, or keeps too many connections."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Autorestarting worker after current request.")
            self.alive = False
        if not self.alive or not self.cfg.keepalive or len(self.keepalived_conns) >= self.max_keepalived:
            writer.force_close()

    def write_reply(self, writer: ReplyWriter, environ: dict[str, Any]) -> None:
        pieces = self.wsgi(environ, writer.start_response)
        try:
            for piece in pieces:
                writer.write(piece)
            writer.close()
        finally:
            if hasattr(pieces, "close"):
                pieces.close()

    def send_rest(self, conn: TConn, is_kept: bool) -> None:
        if self.watch_connection(conn, EVENT_WRITE, self.on_writable):
            self.sending[conn] = Unread(Pace(time.monotonic()), is_kept)
            self.room.add(len(conn.sock.unsent))
            self.make_room()

    def on_writable(self, conn: TConn, sock: socket) -> None:
        """Sends more of a reply. After its end, keeps the connection or ends it."""
        if conn not in self.sending:  # the reply was given up in this round of events, to free memory
            return
        unread = self.sending[conn]
        try:
            sent = conn.sock.send_unsent()
        except OSError:
            self.drop_connection(conn)
            return
        self.room.remove(sent)
        unread.pace.note(sent, time.monotonic())
        if not conn.sock.unsent:
            self.stop_watching(conn)
            self.keep_or_end(conn, unread.is_kept)

    def keep_or_end(self, conn: TConn, is_kept: bool) -> None:
        """Keeps the connection for another request, or has the event loop end it: on_rest() reads from it until the
        client has closed it. gunicorn's finish_request() would keep all clients waiting until then. Any thread may call
        this: it wakes the event loop only for the end, and if bytes of the next request came with this one.
        """
        if not is_kept:
            self.method_queue.defer(self.call_safely, self.end_connection, conn)
        elif conn.parser.unreader.buf.getvalue():
            self.method_queue.defer(self.enqueue_req, conn)
        else:
            self.keep(conn)

    def keep(self, conn: TConn) -> None:
        """Has the connection watched for its next request."""
        conn.set_timeout()
        self.keepalived_conns.append(conn)
        if not self.alive:  # now, as a worker that begins to stop looks at the connections in the list
            conn.timeout = min(conn.timeout, time.monotonic() + STOP_KEEPALIVE_LINGER)
        try:
            self.poller.register(conn.sock, EVENT_READ, partial(self.on_client_socket_readable, conn))
        except BaseException:
            with suppress(ValueError):  # a worker that stops may have closed the connection already
                self.keepalived_conns.remove(conn)
            raise

    def _cap_keepalive(self, deadline: float) -> None:
        """Does what gunicorn's does, with a copy: threads add connections at any time."""
        for conn in self.keepalived_conns.copy():
            conn.timeout = min(conn.timeout, deadline)

    def end_connection(self, conn: TConn) -> None:
        """Ends a connection that the event loop does not watch, after the client has read the last reply."""
        with suppress(OSError):
            conn.sock.shutdown(SHUT_WR)
        if self.watch_connection(conn, EVENT_READ, self.on_rest):
            self.lingering[conn] = Pace(time.monotonic())

    def on_rest(self, conn: TConn, sock: socket) -> None:
        """Ignores what the client still sends after its last reply, and closes the connection when the client has.
        If the worker closed it first, the client could lose the end of the reply.
        """
        with suppress(OSError):  # after a broken connection's error, the next recv() reports the end
            size = len(sock.recv(PIECE))
            if size:
                self.lingering[conn].note(size, time.monotonic())
            else:
                self.drop_connection(conn)

    def murder_pending(self) -> None:
        """Cuts off clients that send or read too slowly, and closes lingering connections. gunicorn calls it often.
        While the worker has as many connections as it may have, a client may pause for CHECK_INTERVAL only.
        """
        super().murder_pending()
        now = time.monotonic()
        if now - self.last_check < CHECK_INTERVAL:
            return
        self.last_check = now
        silence = self.cfg.keepalive if self.alive else STOP_KEEPALIVE_LINGER
        pause = self.settings.read_timeout
        linger = LONGEST_LINGER if self.alive else LINGER
        if self.nr_conns >= self.worker_connections:
            silence = pause = CHECK_INTERVAL
            linger = LINGER
        overdue = [conn for conn, unread in self.sending.items() if unread.pace.is_overdue(now, pause)]
        overdue += [
            conn for conn, pace in self.lingering.items() if pace.is_overdue(now, LINGER) or now - pace.began > linger
        ]
        for conn in overdue:
            self.call_safely(self.drop_connection, conn)
        for conn in [conn for conn, one in self.receiving.items() if one.is_overdue(now, pause, silence)]:
            with suppress(OSError):
                conn.sock.shutdown(SHUT_RD)  # so that the connection ends as soon as the reply is written
            self.call_safely(self.cut_off_request, conn)
