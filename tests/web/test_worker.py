"""The worker's event loop alone, driven by hand: a socket pair for each client, and a clock that the test moves.

The loop and the app run in the test's own thread, so that nothing here waits or depends on timing.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar

import pytest
import trustme
from gunicorn.config import Config  # type: ignore[import-untyped]

from bridge.web.arrival import SLOWEST_RATE
from bridge.web.worker import ACCEPT_PAUSE, CHECK_INTERVAL, LINGER, Worker
from tests.waiting import SOON

P = ParamSpec("P")
T = TypeVar("T")

ADDRESS = ("192.0.2.1", 50_000)
KEEPALIVE, READ_TIMEOUT, MAX_BODY = 95, 10, 1_000_000
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def post(length: int, *headers: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % length
    return head + b"".join(header + b"\r\n" for header in headers) + b"\r\n"


class App:
    """Answers every request with `reply`, and keeps the bodies that it has read."""

    def __init__(self) -> None:
        self.reply = b"served"
        self.bodies: list[bytes] = []
        settings = SimpleNamespace(max_body=MAX_BODY, read_timeout=READ_TIMEOUT)
        self.extensions = {"parts": SimpleNamespace(settings=settings)}

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        self.bodies.append(environ["wsgi.input"].read())
        start_response("200 OK", [("Content-Length", str(len(self.reply)))])
        return [self.reply]


class InlineThreads(Executor):
    """Runs what it is given at once, in the caller's thread; `started` counts it."""

    def __init__(self) -> None:
        self.started = 0
        self.refusal: RuntimeError | None = None

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self.refusal:
            raise self.refusal
        self.started += 1
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as fault:
            done.set_exception(fault)
        return done


class Time:
    """In the place of the module `time`."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Log:
    """In the place of gunicorn's logger; `lines` are those that an operator would see."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def debug(self, message: str, *values: object) -> None: ...

    def access(self, *values: object) -> None: ...

    def warning(self, message: str, *values: object) -> None:
        self.lines.append(message % values)

    exception = error = warning


class Listener:
    """Accepts the connections in `waiting`, or raises `fault`."""

    def __init__(self) -> None:
        self.waiting: list[socket.socket] = []
        self.fault: OSError | None = None

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.fault:
            raise self.fault
        return self.waiting.pop(), ADDRESS

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 8080)


class Client:
    """The other end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.connection.setblocking(False)

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def read(self) -> bytes:
        """All that has come by now."""
        data = b""
        with suppress(BlockingIOError):
            while piece := self.connection.recv(1 << 16):
                data += piece
        return data

    @property
    def is_cut_off(self) -> bool:
        """Whether the end of the connection comes next; false where more data does."""
        with suppress(BlockingIOError):
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        return False


class Loop:
    """A worker whose event loop is driven by hand."""

    def __init__(self, time: Time) -> None:
        self.time, self.app, self.log = time, App(), Log()
        self.listener: Any = Listener()
        self.threads = InlineThreads()
        self.clients: list[Client] = []
        self.cfg = Config()
        for name, value in {"keepalive": KEEPALIVE, "threads": 4, "worker_connections": 50}.items():
            self.cfg.set(name, value)
        self.worker = Worker(1, os.getppid(), [], None, 30, self.cfg, self.log)
        self.worker.wsgi = self.app
        self.worker.tpool = self.threads
        self.worker.poller = DefaultSelector()
        self.worker.method_queue.init()
        self.worker.poller.register(
            self.worker.method_queue.fileno(), EVENT_READ, self.worker.method_queue.run_callbacks
        )

    def connect(self, sent: bytes = b"") -> Client:
        ours, theirs = socket.socketpair()
        self.listener.waiting.append(ours)
        self.clients.append(client := Client(theirs))
        self.worker.accept(self.listener)
        if sent:
            client.send(sent)
            self.run()
        return client

    def run(self) -> None:
        """Until there is nothing to do at this time."""
        self.worker.murder_pending()
        for _ in range(2_000):
            if not self.worker.poller.select(0):
                return
            self.step()
        raise AssertionError("the loop has work without end")

    def step(self) -> None:
        self.worker.wait_for_and_dispatch_events(0)

    def wait(self, seconds: float) -> None:
        self.time.now += seconds
        self.run()

    @property
    def threads_used(self) -> int:
        return self.threads.started

    def end(self) -> None:
        """All clients leave; each place that they had is free again, once."""
        for client in self.clients:
            client.connection.close()
        self.run()
        self.worker.murder_keepalived(force=True)
        assert self.worker.nr_conns == 0
        assert (self.worker.receiving, self.worker.lingering, self.worker.buffered) == ({}, {}, 0)
        self.worker.poller.close()
        self.worker.method_queue.close()
        self.worker.tmp.close()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loop]:
    monkeypatch.setattr("bridge.web.worker.time", time := Time())
    made = Loop(time)
    yield made
    made.end()


# --- a request comes in -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "request_",
    [GET, post(5) + b"hello", b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
    ids=["no body", "a length", "chunks"],
)
def test_a_request_gets_a_thread_only_when_it_is_complete(loop: Loop, request_: bytes) -> None:
    client = loop.connect()
    for place in range(len(request_)):
        assert loop.threads_used == 0, request_[:place]
        client.send(request_[place : place + 1])
        loop.run()
    assert loop.threads_used == 1
    assert loop.app.bodies == [b"hello" if b"hello" in request_ else b""]
    assert client.read().endswith(b"served")
    assert not client.is_cut_off


def test_clients_that_do_not_finish_hold_up_nobody(loop: Loop) -> None:
    for sent in (b"", b"GET / HT", post(10) + b"12345"):
        for _ in range(10):
            loop.connect(sent)
    assert loop.connect(GET).read().endswith(b"served")
    assert loop.threads_used == 1


def test_a_request_is_read_in_pieces_of_any_size(loop: Loop) -> None:
    body = bytes(range(256)) * 3_000
    client = loop.connect()
    sent = post(len(body)) + body
    while sent:
        sent = sent[client.connection.send(sent) :]
        loop.run()
    assert loop.app.bodies == [body]


@pytest.mark.parametrize("sent", [b"garbage\r\n\r\n", b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n"])
def test_a_malformed_request_is_refused_at_once(loop: Loop, sent: bytes) -> None:
    client = loop.connect(sent)
    assert client.read().startswith(b"HTTP/1.1 400 ")
    assert client.is_cut_off
    assert loop.app.bodies == []


def test_a_client_that_waits_for_100_continue_gets_it_once(loop: Loop) -> None:
    client = loop.connect(post(5, b"Expect: 100-continue"))
    assert client.read() == CONTINUE
    assert loop.threads_used == 0
    client.send(b"he")
    loop.run()
    client.send(b"llo")
    loop.run()
    assert client.read().startswith(b"HTTP/1.1 200 ")
    assert loop.app.bodies == [b"hello"]


def test_a_body_that_is_too_large_is_not_asked_for(loop: Loop) -> None:
    client = loop.connect(post(MAX_BODY + 1, b"Expect: 100-continue"))
    assert client.read().startswith(b"HTTP/1.1 200 ")  # the app here has no limit; Flask answers 413
    assert loop.app.bodies == [b""]


# --- a client is too slow -----------------------------------------------------------------------------------


def test_a_client_that_sends_nothing_is_cut_off_after_the_keepalive_time(loop: Loop) -> None:
    client = loop.connect()
    loop.wait(KEEPALIVE)
    assert not client.is_cut_off
    loop.wait(CHECK_INTERVAL / 2)
    assert not client.is_cut_off, "slow clients are searched for once in CHECK_INTERVAL only"
    loop.wait(CHECK_INTERVAL / 2)
    assert client.is_cut_off
    assert loop.threads_used == 0


def test_a_client_that_pauses_within_its_body_gets_the_apps_answer_and_is_cut_off(loop: Loop) -> None:
    client = loop.connect(post(10) + b"12345")
    loop.wait(READ_TIMEOUT)
    assert loop.threads_used == 0
    loop.wait(CHECK_INTERVAL + 0.1)
    assert loop.app.bodies == [b"12345"]
    assert client.read().endswith(b"served")
    assert client.is_cut_off
    assert loop.worker.nr_conns == 0, "its place is free at once, although the client has not closed its end"


def test_a_client_that_pauses_within_its_head_is_cut_off(loop: Loop) -> None:
    client = loop.connect(b"GET / HTTP/1.1\r\nHo")
    loop.wait(READ_TIMEOUT + CHECK_INTERVAL)
    assert client.is_cut_off
    assert loop.app.bodies == []


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(loop: Loop) -> None:
    dripping, steady = loop.connect(post(MAX_BODY)), loop.connect(post(MAX_BODY))
    for _ in range(2 * READ_TIMEOUT):
        with suppress(BrokenPipeError):
            dripping.send(b"x")
        steady.send(b"x" * SLOWEST_RATE)
        loop.wait(1)
    assert loop.app.bodies == [b"x" * len(loop.app.bodies[0])]
    assert dripping.read().endswith(b"served")
    assert dripping.is_cut_off
    assert not steady.is_cut_off


@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["silent", "in the middle"])
def test_where_all_places_are_taken_those_who_send_nothing_are_cut_off_first(loop: Loop, sent: bytes) -> None:
    loop.worker.worker_connections = 3
    slow = [loop.connect(sent) for _ in range(2)]
    loop.wait(2 * CHECK_INTERVAL)
    assert not any(client.is_cut_off for client in slow)
    loop.connect(sent)
    loop.wait(2 * CHECK_INTERVAL)
    assert all(client.is_cut_off for client in slow)


def test_while_the_worker_stops_a_silent_client_is_cut_off_soon(loop: Loop) -> None:
    client = loop.connect()
    loop.worker.alive = False
    loop.wait(4)
    assert client.is_cut_off


# --- memory -------------------------------------------------------------------------------------------------


def test_incomplete_requests_are_bounded_together_and_the_largest_is_cut_off_first(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.web.worker.MAX_BUFFERED", 100_000)
    clients = []
    for size in (400_000, 600_000):
        clients.append(loop.connect(post(MAX_BODY)))
        for _ in range(size // 20_000):
            clients[-1].send(b"x" * 20_000)
            loop.run()
    assert loop.threads_used == 0
    for _ in range(6):
        clients[0].send(b"x" * 20_000)
        loop.run()
    assert [len(body) for body in loop.app.bodies] == [600_000]
    assert clients[1].read().endswith(b"served")
    assert clients[1].is_cut_off
    assert not clients[0].is_cut_off
    assert loop.worker.buffered < 600_000


def test_a_client_that_was_cut_off_for_another_one_is_not_read_again(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have sent something when the worker looks; the first to be read makes it cut the other one off."""
    large, small = loop.connect(post(MAX_BODY) + b"x" * 50_000), loop.connect(post(MAX_BODY))
    monkeypatch.setattr("bridge.web.worker.MAX_BUFFERED", 60_000 - MAX_BODY)
    small.send(b"x" * 20_000)
    large.send(b"x")
    loop.step()
    assert [len(body) // 1_000 for body in loop.app.bodies] == [50]
    loop.run()
    assert large.read().endswith(b"served")
    assert large.is_cut_off
    assert not small.is_cut_off


def test_bytes_count_as_buffered_until_the_request_is_complete(loop: Loop) -> None:
    sent = post(5) + b"hel"
    client = loop.connect(sent)
    assert loop.worker.buffered == len(sent)
    client.send(b"lo")
    loop.run()
    assert loop.worker.buffered == 0


# --- replies ------------------------------------------------------------------------------------------------


def test_a_request_waits_while_the_client_leaves_earlier_replies_unread(loop: Loop) -> None:
    loop.app.reply = b"x" * 10_000
    client = loop.connect(GET * 200)
    served = loop.threads_used
    assert 0 < served < 200
    loop.wait(READ_TIMEOUT / 2)
    assert loop.threads_used == served
    got = b""
    while piece := client.read():
        got += piece
        loop.run()
    assert got.count(b"HTTP/1.1 200 OK") == loop.threads_used == 200
    assert not client.is_cut_off


def test_a_client_that_never_reads_its_replies_is_cut_off(loop: Loop) -> None:
    loop.app.reply = b"x" * 10_000
    client = loop.connect(GET * 200)
    served = loop.threads_used
    loop.wait(READ_TIMEOUT + CHECK_INTERVAL)
    assert loop.worker.nr_conns == 0
    assert loop.threads_used == served
    assert client.read().count(b"HTTP/1.1 200 OK") == served


def test_the_next_request_of_a_connection_may_come_with_the_one_before_or_in_part(loop: Loop) -> None:
    bodies = [letter * 5_000 for letter in (b"a", b"b", b"c", b"d")]  # gunicorn reads 8 KiB at once
    sent = b"".join(post(len(body)) + body for body in bodies)
    client = loop.connect(sent[:-3])
    assert loop.app.bodies == bodies[:3]
    client.send(sent[-3:])
    loop.run()
    assert loop.app.bodies == bodies
    assert client.read().count(b"HTTP/1.1 200 OK") == 4
    assert not client.is_cut_off


def test_a_kept_connection_may_be_silent_between_two_requests(loop: Loop) -> None:
    client = loop.connect(GET)
    loop.wait(KEEPALIVE - 1)
    client.send(GET)
    loop.run()
    assert client.read().count(b"HTTP/1.1 200 OK") == 2


def test_after_a_request_that_ended_too_early_the_connection_is_not_used_again(loop: Loop) -> None:
    """Nobody knows where the next request begins."""
    client = loop.connect(post(100) + b"12345")
    client.connection.shutdown(socket.SHUT_WR)
    loop.run()
    assert loop.app.bodies == [b"12345"]
    assert client.read().endswith(b"served")
    assert client.is_cut_off
    assert loop.worker.nr_conns == 0


def test_the_end_of_a_reply_is_not_lost_while_the_client_is_still_sending(loop: Loop) -> None:
    loop.app.reply = b"x" * 50_000
    client = loop.connect(LAST + b"more")
    for _ in range(5):
        client.send(b"more" * 5_000)
        loop.run()
    assert client.read().endswith(loop.app.reply)  # a closed connection would have been reset
    assert client.is_cut_off
    assert loop.worker.nr_conns == 1
    client.connection.shutdown(socket.SHUT_WR)
    loop.run()
    assert loop.worker.nr_conns == 0


def test_a_client_that_does_not_close_its_end_holds_up_nobody_and_its_place_not_for_long(loop: Loop) -> None:
    client = loop.connect(LAST)
    assert client.read().endswith(b"served")
    assert loop.connect(GET).read().endswith(b"served")
    assert loop.worker.nr_conns == 2
    loop.wait(LINGER + CHECK_INTERVAL)
    assert loop.worker.nr_conns == 1


def test_an_event_without_bytes_neither_blocks_the_loop_nor_closes_the_connection(loop: Loop) -> None:
    loop.connect(LAST)
    (conn,) = loop.worker.lingering
    loop.worker.on_rest(conn, conn.sock)
    assert list(loop.worker.lingering) == [conn]


# --- connections that break, and a worker that lacks something ----------------------------------------------


def test_a_connection_that_breaks_after_its_last_reply_frees_its_place(loop: Loop) -> None:
    client = loop.connect(LAST)
    client.connection.close()  # with the reply unread, which resets it
    loop.run()
    assert loop.worker.nr_conns == 0


def test_a_connection_that_breaks_within_a_request_frees_its_place(loop: Loop) -> None:
    client = loop.connect(post(5, b"Expect: 100-continue"))
    client.connection.close()  # with "100 Continue" unread, which resets it
    loop.run()
    assert loop.worker.nr_conns == 0
    assert loop.threads_used == 0


def test_a_connection_that_cannot_be_watched_frees_its_place(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        loop.listener.waiting.append(ours)
        monkeypatch.setattr(loop.worker.poller, "register", refuse(OSError(errno.ENOMEM, "no memory")))
        loop.worker.accept(loop.listener)
    assert loop.worker.nr_conns == 0
    assert ours.fileno() == -1


def test_a_fault_of_gunicorn_frees_the_place_of_its_client(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop.worker, "handle_request", refuse(SystemError("a fault of gunicorn")))
    monkeypatch.setattr(loop.worker, "handle_error", refuse(SystemError("and one more")))
    client = loop.connect(GET)
    assert client.is_cut_off


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
def test_where_no_connection_can_be_opened_new_clients_wait(loop: Loop, number: int) -> None:
    loop.listener.fault = OSError(number, os.strerror(number))
    loop.worker.accept(loop.listener)
    assert loop.time.slept == [ACCEPT_PAUSE]
    assert os.strerror(number) in loop.log.lines[0]
    loop.listener.fault = None
    assert loop.connect(GET).read().endswith(b"served")


def test_any_other_fault_of_the_listener_is_not_hidden(loop: Loop) -> None:
    loop.listener.fault = OSError(errno.EBADF, "bad file")
    with pytest.raises(OSError, match="bad file"):
        loop.worker.accept(loop.listener)


def test_where_no_thread_can_be_started_the_client_is_cut_off_and_the_worker_goes_on(loop: Loop) -> None:
    loop.threads.refusal = RuntimeError("can't start new thread")
    assert loop.connect(GET).is_cut_off
    assert "can't start new thread" in loop.log.lines[0]
    loop.threads.refusal = None
    assert loop.connect(GET).read().endswith(b"served")


def refuse(fault: Exception) -> Callable[..., object]:
    def refused(*_: object) -> object:
        raise fault

    return refused


# --- TLS ----------------------------------------------------------------------------------------------------


def test_over_tls_gunicorn_reads_the_request_itself(loop: Loop, tmp_path: Path) -> None:
    """What arrives is encrypted, so nobody can say whether it is complete before it has been read in a thread."""
    authority = trustme.CA()
    authority.issue_cert("bridge.test").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    for name in ("certfile", "keyfile"):
        loop.cfg.set(name, str(tmp_path / "server.pem"))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    ours, theirs = socket.socketpair()
    theirs.settimeout(SOON)
    got: list[bytes] = []

    def ask() -> None:
        with context.wrap_socket(theirs, server_hostname="bridge.test") as encrypted:
            encrypted.sendall(post(5, b"Expect: 100-continue", b"Connection: close"))
            got.append(encrypted.recv(len(CONTINUE)))
            encrypted.sendall(b"hello")
            while piece := encrypted.recv(1 << 16):
                got.append(piece)

    asking = threading.Thread(target=ask)
    asking.start()
    loop.listener.waiting.append(ours)
    loop.worker.accept(loop.listener)
    loop.run()
    asking.join()
    assert got[0] == CONTINUE
    assert got[-1].endswith(b"served")
    assert loop.app.bodies == [b"hello"]
    assert loop.worker.nr_conns == 0


def test_over_tls_gunicorn_cuts_off_a_client_that_sends_nothing(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gunicorn.workers.gthread.DEFAULT_WORKER_DATA_TIMEOUT", 0)
    loop.cfg.set("certfile", "never read")
    loop.cfg.set("keepalive", 0)
    client = loop.connect()
    loop.run()
    assert loop.worker.nr_conns == 1
    loop.run()
    assert client.is_cut_off
