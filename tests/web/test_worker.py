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
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER  # type: ignore[import-untyped]

from bridge.errors import BridgeError
from bridge.web.body_limits import BODY_LIMITS
from bridge.web.pace import SLOWEST_RATE
from bridge.web.reply_socket import ReplySocket, wait_for_client
from bridge.web.room import LARGE, ROOM, SMALL, Room
from bridge.web.worker import (
    ACCEPT_PAUSE,
    CHECK_INTERVAL,
    HINT_INTERVAL,
    LINGER,
    LONGEST_LINGER,
    NO_TLS,
    Worker,
)
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
    """Answers every request with `reply`, or with an error of its body, and keeps the bodies that it has read.
    `held`: the bytes that the worker held while the last request was answered. `limit`: the largest body of a head.
    `waits`: as a turn, it waits for the client.
    """

    def __init__(self) -> None:
        self.reply = b"served"
        self.bodies: list[bytes] = []
        settings = SimpleNamespace(max_body=MAX_BODY, read_timeout=READ_TIMEOUT)
        self.limit = MAX_BODY
        self.waits = False
        self.room = Room()
        self.held = 0
        self.extensions = {
            "parts": SimpleNamespace(settings=settings),
            BODY_LIMITS: SimpleNamespace(largest_body=lambda head: self.limit),
            ROOM: self.room,
        }

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        if self.waits:
            wait_for_client(environ)
        status, reply, self.held = "200 OK", self.reply, self.room.held
        try:
            self.bodies.append(environ["wsgi.input"].read())
        except BridgeError as refusal:
            status, reply = f"{refusal.status} Refused", refusal.message.encode()
        start_response(status, [("Content-Length", str(len(reply)))])
        return [reply]


class InlineThreads(Executor):
    """Runs what it is given at once, in the caller's thread; `started` counts it."""

    def __init__(self) -> None:
        self.started = 0
        self.refusal: RuntimeError | None = None

    def run(self, work: Callable[[], object]) -> None:
        if self.refusal:
            raise self.refusal
        self.started += 1
        work()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        self.run(lambda: done.set_result(work(*args, **kwargs)))
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

    info = debug

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

    def read_all(self, client: Client) -> int:
        """Reads what comes, and returns how many bytes that were."""
        size = 0
        while piece := client.read():
            size += len(piece)
            self.run()
        return size

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
        assert (self.worker.receiving, self.worker.sending, self.worker.lingering) == ({}, {}, {})
        assert self.app.room.held == 0
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
    reply = client.read()
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert reply.endswith(b"larger than %d bytes." % MAX_BODY)
    assert client.is_cut_off


def test_a_body_that_the_head_does_not_allow_is_not_waited_for(loop: Loop) -> None:
    loop.app.limit = SMALL
    refused, small = loop.connect(post(SMALL + 1)), loop.connect(post(SMALL))
    reply = refused.read()
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert b"Connection: close" in reply
    assert refused.is_cut_off
    assert loop.threads_used == 1
    small.send(b"x" * SMALL)
    loop.run()
    assert small.read().startswith(b"HTTP/1.1 200 ")


def test_a_body_in_chunks_is_read_as_far_as_the_head_allows(loop: Loop) -> None:
    loop.app.limit = SMALL
    client = loop.connect(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    for _ in range(7):
        assert loop.threads_used == 0
        client.send(chunk)
        loop.run()
    assert client.read().startswith(b"HTTP/1.1 413 ")
    assert client.is_cut_off


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
    loop: Loop,
) -> None:
    limit(loop, 1_100_000)
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
    assert loop.app.bodies == []
    assert clients[1].read().startswith(b"HTTP/1.1 503 ")
    assert clients[1].is_cut_off
    assert not clients[0].is_cut_off
    assert loop.app.room.held < 600_000


def test_a_client_that_was_cut_off_for_another_one_is_not_read_again(
    loop: Loop,
) -> None:
    """Both have sent something when the worker looks; the first to be read makes it cut the other one off."""
    large, small = loop.connect(post(MAX_BODY) + b"x" * 80_000), loop.connect(post(MAX_BODY))
    limit(loop, 90_000)
    small.send(b"x" * 20_000)
    large.send(b"x")
    loop.step()
    assert loop.threads_used == 1
    loop.run()
    assert large.read().startswith(b"HTTP/1.1 503 ")
    assert large.is_cut_off
    assert not small.is_cut_off


def test_bytes_count_as_held_until_the_request_is_answered(loop: Loop) -> None:
    sent = post(5) + b"hel"
    client = loop.connect(sent)
    assert loop.app.room.held == len(sent)
    client.send(b"lo")
    loop.step()
    assert loop.app.held >= len(sent)
    assert loop.app.room.held == 0


def test_bodies_that_threads_have_leave_no_room_for_large_ones_but_for_small_ones(loop: Loop) -> None:
    limit(loop, 100_000)
    loop.app.room.add(100_001)  # as bodies of running turns
    large = loop.connect(post(MAX_BODY) + b"x" * (SMALL + 1))
    assert large.read().startswith(b"HTTP/1.1 503 ")
    assert large.is_cut_off
    assert loop.connect(post(SMALL // 2) + b"x" * (SMALL // 2)).read().endswith(b"served")
    loop.app.room.remove(100_001)


def test_a_head_that_would_take_too_much_memory_is_not_answered(loop: Loop) -> None:
    limit(loop, 100_000)
    client = loop.connect(b"GET / HTTP/1.1\r\n")
    for _ in range(11):
        with suppress(BrokenPipeError):
            client.send(b"X: " + b"x" * 10_000)
        loop.run()
    assert client.is_cut_off
    assert loop.threads_used == 0


def test_unread_replies_are_bounded_with_the_requests_and_the_largest_is_given_up_first(loop: Loop) -> None:
    limit(loop, 4_000_000)
    loop.app.reply = b"x" * 2 * LARGE
    large = loop.connect(GET)
    loop.app.reply = b"x" * LARGE
    others = [loop.connect(GET), loop.connect(GET)]
    assert loop.worker.nr_conns == 2
    assert loop.read_all(large) < 2 * LARGE
    assert [loop.read_all(client) > LARGE for client in others] == [True, True]


def limit(loop: Loop, most: int) -> None:
    loop.app.room._most = most


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
    assert client.read().count(b"HTTP/1.1 200 OK") == served - 1, "the last reply is kept until its time is over"


def test_a_reply_that_the_client_does_not_read_takes_no_thread(loop: Loop) -> None:
    """The loop runs here in the thread of the app: a write that waits would not return."""
    loop.app.reply = b"x" * 3_000_000
    client = loop.connect(GET)
    assert loop.connect(GET) is not None
    assert loop.threads_used == 2
    assert loop.read_all(client) > 3_000_000
    assert not client.is_cut_off
    client.send(GET)
    loop.run()
    assert loop.read_all(client) > 3_000_000


def test_a_client_that_reads_a_reply_steadily_gets_all_of_it_and_one_that_drips_does_not(loop: Loop) -> None:
    loop.app.reply = b"x" * 5_000_000
    dripping, steady = loop.connect(GET), loop.connect(GET)
    for _ in range(60):
        with suppress(BlockingIOError):
            dripping.connection.recv(SLOWEST_RATE // 50)
        for _ in range(15):
            with suppress(BlockingIOError):
                steady.connection.recv(SLOWEST_RATE)
        loop.wait(1)
    assert loop.worker.nr_conns == 1
    assert loop.read_all(steady) > 1_000_000
    assert not steady.is_cut_off


def test_the_reply_of_a_turn_holds_its_thread_until_the_client_has_taken_it(loop: Loop) -> None:
    loop.app.reply, loop.app.waits = b"x" * 3_000_000, True
    ours, theirs = socket.socketpair()
    got: list[int] = []

    def read() -> None:
        with theirs:
            theirs.settimeout(SOON)
            while sum(got) <= 3_000_000:
                got.append(len(theirs.recv(1 << 16)))

    reading = threading.Thread(target=read)
    theirs.sendall(GET)
    reading.start()
    loop.listener.waiting.append(ours)
    loop.worker.accept(loop.listener)
    loop.step()
    assert loop.threads_used == 1
    assert loop.worker.sending == {}
    reading.join()


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


def test_a_request_wakes_the_loop_once(loop: Loop) -> None:
    """The thread that answered it has the connection watched."""
    client = loop.connect(GET)
    for _ in range(3):
        assert loop.worker.poller.select(0) == []
        client.send(GET)
        loop.step()
    assert client.read().count(b"HTTP/1.1 200 OK") == loop.threads_used == 4


def test_a_request_costs_few_calls_of_the_system(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits for such a call lets other threads run, and has to wait for them."""
    client = loop.connect(GET)
    calls: list[str] = []
    for name in ("recv", "recv_into", "send", "settimeout"):
        call = getattr(socket.socket, name)
        counted = lambda self, *args, name=name, call=call: (calls.append(name), call(self, *args))[1]  # noqa: E731
        monkeypatch.setattr(ReplySocket, name, counted, raising=False)
    client.send(post(5) + b"hello")
    loop.step()
    assert loop.app.bodies[-1] == b"hello"
    assert calls == ["recv_into", "send"]


def test_a_connection_that_cannot_be_kept_frees_its_place(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(loop.worker.poller, "register", refuse(OSError(errno.ENOMEM, "no memory")))
        ours, theirs = socket.socketpair()
        theirs.sendall(GET)
        loop.listener.waiting.append(ours)
        loop.worker.accept(loop.listener)
    loop.run()
    with theirs:
        assert loop.worker.nr_conns == 0
        assert not loop.worker.keepalived_conns


def test_a_stopping_worker_keeps_a_connection_for_a_short_time(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gunicorn.workers.gthread.time", loop.time)
    before, after = loop.connect(GET), loop.connect()
    loop.worker.alive = False
    loop.worker._cap_keepalive(loop.time.now + STOP_KEEPALIVE_LINGER)
    after.send(GET)
    loop.run()
    loop.worker.murder_keepalived()
    assert not before.is_cut_off
    assert after.read().endswith(b"served")
    loop.wait(STOP_KEEPALIVE_LINGER)
    loop.worker.murder_keepalived()
    before.read()
    assert before.is_cut_off
    assert after.is_cut_off


@pytest.mark.parametrize("shortage", ["requests", "places"])
def test_a_connection_that_cannot_be_kept_is_closed_after_its_reply(loop: Loop, shortage: str) -> None:
    """The worker has served as many requests as it may, or keeps as many connections as it may."""
    if shortage == "requests":
        loop.worker.max_requests = 1
    else:
        loop.worker.max_keepalived = 0
    client = loop.connect(GET)
    assert b"Connection: close\r\n" in client.read()
    assert client.is_cut_off
    assert loop.worker.alive is (shortage == "places")


def test_a_reply_that_fails_before_its_head_is_an_error_and_later_it_is_cut_off(loop: Loop) -> None:
    class Broken(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            yield from self[:]
            raise ValueError("a fault of the app")

        def close(self) -> None:
            closed.append(len(self))

    def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return Broken([b"begun"] * (environ["PATH_INFO"] == "/begun"))

    closed: list[int] = []
    assert loop.connect(GET).read().endswith(b"served")
    loop.worker.wsgi = app
    assert loop.connect(GET).read().startswith(b"HTTP/1.1 500 ")
    begun = loop.connect()
    begun.send(GET.replace(b"/ ", b"/begun ", 1))
    begun.connection.shutdown(socket.SHUT_WR)  # gunicorn waits for that
    loop.run()
    got = begun.read()
    assert got.startswith(b"HTTP/1.1 200 OK")
    assert got.endswith(b"5\r\nbegun\r\n"), "the last chunk shows that the reply is complete"
    assert begun.is_cut_off
    assert closed == [0, 1]


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


def test_a_client_that_goes_on_sending_a_refused_body_may_do_so_for_some_time(loop: Loop) -> None:
    loop.app.limit = SMALL
    client = loop.connect(post(MAX_BODY))
    for _ in range(int(LONGEST_LINGER)):
        client.send(b"x" * SLOWEST_RATE)
        loop.wait(1)
    assert loop.worker.nr_conns == 1
    assert loop.threads_used == 1
    assert client.read().startswith(b"HTTP/1.1 413 ")
    for _ in range(2):
        with suppress(BrokenPipeError):
            client.send(b"x" * SLOWEST_RATE)
        loop.wait(CHECK_INTERVAL)
    assert loop.worker.nr_conns == 0


@pytest.mark.parametrize("shortage", ["places", "time"])
def test_where_places_or_time_run_out_no_client_lingers_for_long(loop: Loop, shortage: str) -> None:
    if shortage == "places":
        loop.worker.worker_connections = 1
    client = loop.connect(LAST)
    loop.worker.alive = shortage != "time"
    for _ in range(4):
        with suppress(BrokenPipeError):
            client.send(b"x" * SLOWEST_RATE)
        loop.wait(1)
    assert loop.worker.nr_conns == 0


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


@pytest.mark.parametrize("name", ["receive_bytes", "make_room", "give_to_thread", "keep_or_end"])
def test_a_fault_in_the_loop_closes_its_connection_only(loop: Loop, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    other = loop.connect(b"GET / HT")
    with monkeypatch.context() as patched:
        patched.setattr(loop.worker, name, refuse(KeyError("a fault of the worker")))
        client = loop.connect(post(5) + b"hel")
        if name in ("give_to_thread", "keep_or_end"):
            client.send(b"lo")
            loop.run()
        if name == "keep_or_end":
            client.read()
        assert client.is_cut_off
    assert loop.log.lines == ["a connection is closed: the worker failed to handle it"]
    assert loop.worker.nr_conns == 1
    other.send(b"TP/1.1\r\nHost: x\r\n\r\n")
    loop.run()
    assert other.read().endswith(b"served")


@pytest.mark.parametrize("name", ["cut_off_request", "drop_connection"])
def test_a_fault_in_the_search_for_slow_clients_does_not_end_the_worker(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    slow = loop.connect(b"GET / HT") if name == "cut_off_request" else loop.connect(LAST)
    with monkeypatch.context() as patched:
        patched.setattr(loop.worker, name, refuse_once(getattr(loop.worker, name)))
        loop.wait(READ_TIMEOUT + CHECK_INTERVAL)
    slow.read()
    assert slow.is_cut_off
    assert loop.worker.nr_conns == 0


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EPROTO])
def test_where_no_connection_can_be_opened_new_clients_wait(loop: Loop, number: int) -> None:
    loop.listener.fault = OSError(number, os.strerror(number))
    loop.worker.accept(loop.listener)
    assert loop.time.slept == [ACCEPT_PAUSE]
    assert os.strerror(number) in loop.log.lines[0]
    loop.listener.fault = None
    assert loop.connect(GET).read().endswith(b"served")


def test_a_broken_listener_is_not_hidden(loop: Loop) -> None:
    loop.listener.fault = OSError(errno.EBADF, "bad file")
    with pytest.raises(OSError, match="bad file"):
        loop.worker.accept(loop.listener)


def test_where_no_thread_can_be_started_the_client_is_cut_off_and_the_worker_goes_on(loop: Loop) -> None:
    loop.threads.refusal = RuntimeError("can't start new thread")
    assert loop.connect(GET).is_cut_off
    assert "can't start new thread" in loop.log.lines[0]
    loop.threads.refusal = None
    assert loop.connect(GET).read().endswith(b"served")


def refuse_once(method: Callable[..., object]) -> Callable[..., object]:
    faults = [KeyError("a fault of the worker")]

    def refused(*values: object) -> object:
        if faults:
            raise faults.pop()
        return method(*values)

    return refused


def refuse(fault: Exception) -> Callable[..., object]:
    def refused(*_: object) -> object:
        raise fault

    return refused


# --- TLS ----------------------------------------------------------------------------------------------------


def client_hello() -> bytes:
    """What a client with https sends first."""
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname="bridge.test").do_handshake()
    return sent.read()


def test_a_client_that_speaks_https_to_the_http_port_is_refused_at_once_with_a_hint_in_the_log(loop: Loop) -> None:
    for _ in range(3):
        client = loop.connect(client_hello())
        assert client.read() == NO_TLS
        assert client.is_cut_off
    assert loop.threads_used == 0
    assert len(loop.log.lines) == 1
    assert "a client speaks https to this http port: write http:// instead of https://" in loop.log.lines[0]
    loop.wait(HINT_INTERVAL)
    loop.connect(client_hello())
    assert len(loop.log.lines) == 2


def test_https_to_the_http_port_is_recognised_by_its_second_byte(loop: Loop) -> None:
    client = loop.connect()
    for number, byte in enumerate(client_hello()[:2]):
        assert (client.read(), number) == (b"", number)
        client.send(bytes([byte]))
        loop.run()
    assert client.read() == NO_TLS


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
