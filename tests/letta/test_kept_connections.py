"""Connections that are kept for the next call: when they are used again, and when they are not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
import requests
import urllib3
from urllib3.util import connection as urllib3_connection

from bridge.letta import kept_connection, kept_connections
from bridge.letta.kept_connections import KeptConnections
from tests.letta_server import LettaServerStub
from tests.raw_server import RawServer, read_request
from tests.tls import TlsProxy
from tests.waiting import SOON, until

pytestmark = pytest.mark.servers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HELLO = b"5\r\nhello\r\n"
LAST = b"0\r\n\r\n"

Serve = Callable[[socket.socket, int], object]


def get(
    kept: KeptConnections, url: str, body: bytes | None = None, seconds: float = SOON, **headers: str
) -> requests.Response:
    request = requests.PreparedRequest()
    request.method, request.url, request.body = "GET" if body is None else "POST", f"{url}/v1/x", body
    length = {} if body is None else {"Content-Length": str(len(body))}
    request.headers = requests.structures.CaseInsensitiveDict({**headers, **length})
    limits: Any = urllib3.Timeout(connect=SOON, read=seconds)
    return kept.send(request, stream=True, timeout=limits)


class Server:
    """Calls `serve` for each request with the connection and the number of the request on it, from 0."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self.connections.append(self._listening.accept()[0])
                threading.Thread(target=self._answer_all, args=(self.connections[-1],), daemon=True).start()

    def _answer_all(self, connection: socket.socket) -> None:
        number = 0
        with suppress(OSError):
            while read_request(connection):
                self._serve(connection, number)
                number += 1

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for one in (self._listening, *self.connections):
            one.close()


@contextmanager
def serving(serve: Serve, most: int = 8) -> Iterator[tuple[Server, KeptConnections]]:
    server = Server(serve)
    kept = KeptConnections(server.url, most)
    try:
        yield server, kept
    finally:
        kept.close()
        server.close()


def test_a_connection_is_used_again_after_an_answer() -> None:
    with serving(lambda one, _: one.sendall(OK)) as (server, kept):
        assert [get(kept, server.url).content for _ in range(3)] == [b"hello"] * 3
        assert len(server.connections) == 1


def test_a_connection_that_the_server_may_close_in_this_moment_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Letta's server closes a connection that had no call for 5 seconds."""
    with serving(lambda one, _: one.sendall(OK)) as (server, kept):
        get(kept, server.url).content  # noqa: B018
        monkeypatch.setattr(kept_connection, "LONGEST_IDLE", 0.0)
        assert get(kept, server.url).content == b"hello"
        assert len(server.connections) == 2


def test_an_answer_can_be_read_after_its_connection_was_given_to_another_call() -> None:
    with serving(lambda one, number: one.sendall(OK.replace(b"hello", b"%5d" % number))) as (server, kept):
        first = get(kept, server.url)
        assert first.raw.closed is False
        second = get(kept, server.url)
        assert (first.content, second.content) == (b"    0", b"    1")
        assert len(server.connections) == 1


def test_calls_at_the_same_time_have_connections_of_their_own() -> None:
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO)) as (server, kept):
        answers = [get(kept, server.url) for _ in range(3)]
        assert len(server.connections) == 3
        for answer in answers:
            answer.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", id="announced"),
        pytest.param(OK + b"more", id="followed by something"),
        pytest.param(OK + OK, id="followed by another answer"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", id="an old protocol"),
    ],
)
def test_a_connection_that_may_be_closed_or_out_of_step_is_not_used_again(answer: bytes) -> None:
    with serving(lambda one, _: one.sendall(answer)) as (server, kept):
        assert [get(kept, server.url).content for _ in range(2)] == [b"hello"] * 2
        assert len(server.connections) == 2


def test_a_connection_that_the_server_closed_meanwhile_is_not_used_again() -> None:
    with serving(lambda one, _: one.sendall(OK)) as (server, kept):
        assert get(kept, server.url).content == b"hello"
        server.connections[0].shutdown(socket.SHUT_RDWR)
        assert get(kept, server.url).content == b"hello"
        assert len(server.connections) == 2


def test_a_connection_is_closed_if_its_answer_is_not_read_to_the_end() -> None:
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO)) as (server, kept):
        with get(kept, server.url) as answer:
            assert answer.raw.read1() == b"hello"
        with get(kept, server.url) as answer:
            assert answer.raw.read1() == b"hello"
        assert len(server.connections) == 2


def test_no_more_connections_are_kept_than_wanted() -> None:
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO), most=2) as (server, kept):
        answers = [get(kept, server.url) for _ in range(4)]
        for one in server.connections:
            one.sendall(LAST)
        assert [answer.content for answer in answers] == [b"hello"] * 4
        answers = [get(kept, server.url) for _ in range(4)]
        assert len(server.connections) == 6
        for answer in answers:
            answer.close()


def test_the_end_of_an_answer_that_comes_later_frees_its_connection_for_the_next_call() -> None:
    """Letta 0.16 ends a stream a tenth of a second after its last event, and nobody waits for that."""
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO)) as (server, kept):
        with get(kept, server.url) as answer:
            assert answer.raw.read1() == b"hello"
            answer.raw.leave_end()
        server.connections[0].sendall(LAST)
        until(lambda: not answer.raw._connection.is_usable)
        with get(kept, server.url) as answer:
            assert answer.raw.read1() == b"hello"
        assert len(server.connections) == 1


def test_no_call_waits_for_the_end_of_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO)) as (server, kept):
        with get(kept, server.url) as left:
            left.raw.leave_end()
        with get(kept, server.url) as answer:
            assert answer.raw.read1() == b"hello"
        assert len(server.connections) == 2
        monkeypatch.setattr(kept_connection, "LONGEST_END", 0.0)
        get(kept, server.url).close()
        assert left.raw._connection is None


@pytest.mark.parametrize("rest", [b"x" * 100_000, b"zz\r\n"], ids=["long", "malformed"])
def test_an_answer_that_goes_on_after_its_end_was_left_costs_its_connection(rest: bytes) -> None:
    with serving(lambda one, _: one.sendall(CHUNKED + HELLO)) as (server, kept):
        with get(kept, server.url) as left:
            left.raw.leave_end()
        server.connections[0].sendall(rest)
        until(lambda: not left.raw._connection.is_usable)
        get(kept, server.url).close()
        assert left.raw._connection is None
        assert len(server.connections) == 2


def test_an_answer_that_only_says_that_the_answer_comes_is_passed_over() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    with serving(lambda one, _: one.sendall(hints + OK)) as (server, kept):
        answer = get(kept, server.url)
        assert (answer.status_code, answer.headers, answer.content) == (200, {"content-length": "5"}, b"hello")


@pytest.mark.parametrize("status", [b"404 Not Found", b"500 Oh", b"202 Accepted", b"302 Elsewhere"])
def test_an_answer_with_another_status_is_read_and_frees_its_connection(status: bytes) -> None:
    with serving(lambda one, _: one.sendall(OK.replace(b"200 OK", status))) as (server, kept):
        for _ in range(2):
            answer = get(kept, server.url)
            assert (answer.status_code, answer.content) == (int(status[:3]), b"hello")
        assert len(server.connections) == 1


def test_a_head_without_end_is_refused() -> None:
    def serve(connection: socket.socket, _: int) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            connection.sendall(b"x" * 65_536)

    with serving(serve) as (server, kept), pytest.raises(requests.ConnectionError):
        get(kept, server.url)


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb"])
def test_a_header_with_a_line_end_is_not_sent(value: str) -> None:
    with RawServer([OK]) as server:
        kept = KeptConnections(server.url, 1)
        with pytest.raises(ValueError, match="line end"):
            get(kept, server.url, **{"X-Name": value})
        kept.close()
    assert b"X-Name" not in b"".join(server.requests)


def test_an_answer_that_comes_before_the_whole_request_was_read_is_read() -> None:
    """Such a server closes the connection, and the request can't be sent to its end."""

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(OK.replace(b"200 OK", b"413 Too Large"))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 20):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        kept = KeptConnections(url, 1)
        answer = get(kept, url, b"x" * 5_000_000)
        assert (answer.status_code, answer.content) == (413, b"hello")
        kept.close()


def test_a_server_that_does_not_read_the_request_becomes_a_timeout() -> None:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        kept = KeptConnections(url, 1)
        stack.callback(kept.close)
        with pytest.raises(requests.ReadTimeout):
            get(kept, url, b"x" * 50_000_000, seconds=0.05)


def test_calls_over_tls_verify_the_certificate_and_keep_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with LettaServerStub() as letta, TlsProxy(int(letta.url.rpartition(":")[2])) as proxy:
        monkeypatch.setattr(kept_connections, "path_of_certificates", lambda: str(proxy.certificate))
        url = f"https://127.0.0.1:{proxy.port}"
        kept = KeptConnections(url, 1)
        sockets = []
        for _ in range(2):
            answer = get(kept, url)
            assert (answer.status_code, bool(answer.content)) == (200, True)
            sockets.append(kept._free[0]._socket)
        assert sockets[0] is sockets[1]
        kept.close()
        with pytest.raises(requests.exceptions.SSLError):
            get(KeptConnections(f"https://localhost:{proxy.port}", 1), f"https://localhost:{proxy.port}")


@contextmanager
def serving_over_tls(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, KeptConnections]]:
    server = Server(serve)
    try:
        with TlsProxy(int(server.url.rpartition(":")[2])) as proxy:
            monkeypatch.setattr(kept_connections, "path_of_certificates", lambda: str(proxy.certificate))
            kept = KeptConnections(f"https://127.0.0.1:{proxy.port}", 8)
            yield f"https://127.0.0.1:{proxy.port}", kept
            kept.close()
    finally:
        server.close()


@pytest.mark.parametrize("begun", [b"", CHUNKED, CHUNKED + HELLO], ids=["no head", "a head", "a part"])
def test_silence_over_tls_becomes_a_timeout(begun: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's ssl module goes on waiting if only the system ends a wait."""
    timeouts = (requests.Timeout, urllib3.exceptions.ReadTimeoutError)
    serving = serving_over_tls(lambda one, _: one.sendall(begun), monkeypatch)
    with serving as (url, kept), pytest.raises(timeouts):
        get(kept, url, seconds=0.3).raw.read()


def test_a_server_that_reads_no_request_over_tls_becomes_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with TlsProxy(server.getsockname()[1]) as proxy:
        monkeypatch.setattr(kept_connections, "path_of_certificates", lambda: str(proxy.certificate))
        url = f"https://127.0.0.1:{proxy.port}"
        kept = KeptConnections(url, 1)
        with pytest.raises(requests.Timeout):
            get(kept, url, b"x" * 50_000_000, seconds=0.3)
        kept.close()
    server.close()


def test_an_answer_over_tls_that_was_left_keeps_no_call_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(connection: socket.socket, number: int) -> None:
        connection.sendall(CHUNKED + HELLO)

    with serving_over_tls(serve, monkeypatch) as (url, kept):
        with get(kept, url) as left:
            assert left.raw.read1() == b"hello"
            left.raw.leave_end()
        with get(kept, url) as answer:
            assert answer.raw.read1() == b"hello"
        assert left.raw._connection is not None


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://[::1]", "::1", 80),
        ("https://[2001:db8::5]", "2001:db8::5", 443),
        ("http://[fe80::abcd]:8283", "fe80::abcd", 8283),
        ("http://letta.example", "letta.example", 80),
        ("https://letta.example:8443/letta", "letta.example", 8443),
    ],
)
def test_the_address_is_that_of_the_url(url: str, host: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    def refuse(address: tuple[str, int], *_: Any, **__: Any) -> socket.socket:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(urllib3_connection, "create_connection", refuse)
    with pytest.raises(requests.ConnectionError):
        get(KeptConnections(url, 1), url)
    assert asked == [(host, port)]


def test_an_answer_that_changes_the_protocol_is_refused() -> None:
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nabc"
    with serving(lambda one, _: one.sendall(upgrade)) as (server, kept), pytest.raises(requests.ConnectionError):
        get(kept, server.url)


def test_a_server_that_sends_on_after_the_end_keeps_no_call_waiting() -> None:
    go_on = threading.Event()

    def serve(connection: socket.socket, _: int) -> None:
        connection.sendall(CHUNKED + HELLO)
        while go_on.wait(SOON):
            connection.sendall(HELLO * 10_000)

    with serving(serve) as (server, kept):
        with get(kept, server.url) as left:
            left.raw.leave_end()
        go_on.set()
        for _ in range(3):
            get(kept, server.url).close()
        assert sum(map(len, left.raw._pieces)) == 0


def test_the_path_of_the_base_url_and_its_host_are_sent() -> None:
    with RawServer([OK]) as server:
        kept = KeptConnections(f"{server.url}/letta", 1)
        assert get(kept, f"{server.url}/letta").content == b"hello"
        kept.close()
        host = server.url.removeprefix("http://").encode()
    assert server.requests[0].startswith(b"GET /letta/v1/x HTTP/1.1\r\nHost: %s\r\n" % host)
