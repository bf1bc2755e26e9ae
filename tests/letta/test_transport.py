"""httpx over urllib3's connections: what goes over them is the same, and what goes wrong has httpx's names."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator

import httpx
import pytest

from bridge.letta.transport import PooledTransport
from tests.raw_server import WAIT, RawServer
from tests.waiting import SOON

pytestmark = pytest.mark.servers

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-One: 1\r\nX-Two: a\r\nX-Two: b\r\n\r\nhi"


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(transport=PooledTransport(4), timeout=httpx.Timeout(SOON), trust_env=False) as made:
        yield made


def test_a_request_and_its_answer_come_through_as_they_are(client: httpx.Client) -> None:
    with RawServer([OK]) as server:
        answer = client.post(f"{server.url}/a/b?x=1&x=2", content=b"{}", headers={"X-Mine": "yes"})
    assert (answer.status_code, answer.text) == (200, "hi")
    assert answer.headers.get_list("X-Two") == ["a", "b"]
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /a/b?x=1&x=2 HTTP/1.1\r\n")
    assert b"x-mine: yes" in head.lower()
    assert head.lower().count(b"host:") == head.lower().count(b"content-length:") == 1
    assert body == b"{}"


def test_a_packed_answer_is_unpacked_once(client: httpx.Client) -> None:
    packed = gzip.compress(b"words")
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with RawServer([head + packed]) as server:
        assert client.get(server.url).text == "words"


def test_a_redirect_is_an_answer(client: httpx.Client) -> None:
    with RawServer([b"HTTP/1.1 307 Go\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"]) as server:
        assert client.get(server.url).status_code == 307
    assert len(server.requests) == 1


def test_a_connection_is_used_again(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.settimeout(SOON)
        sent = list[str]()
        for _ in range(2):
            asking = threading.Thread(target=lambda: sent.append(client.get(url).text))
            asking.start()
            if not sent:
                connection, _ = listening.accept()
            connection.recv(65536)
            connection.sendall(OK)
            asking.join()
        connection.close()
    assert sent == ["hi", "hi"]


@pytest.mark.fault("Letta refuses connections, or has no address")
def test_nobody_there_is_a_connect_error(client: httpx.Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(httpx.ConnectError):
        client.get(f"http://127.0.0.1:{port}/")


@pytest.mark.fault("Letta refuses connections, or has no address")
def test_an_unknown_host_is_a_connect_error(client: httpx.Client) -> None:
    with pytest.raises(httpx.ConnectError):
        client.get("http://no-such-host.invalid/")


@pytest.mark.fault("Letta takes a request and never answers")
def test_silence_is_a_read_timeout(client: httpx.Client) -> None:
    with RawServer([WAIT]) as server, pytest.raises(httpx.ReadTimeout):
        client.get(server.url, timeout=0.1)


@pytest.mark.fault("Letta takes a request and never answers")
def test_silence_in_the_middle_of_an_answer_is_a_read_timeout(client: httpx.Client) -> None:
    with RawServer([OK[:-1], WAIT]) as server, pytest.raises(httpx.ReadTimeout):
        client.get(server.url, timeout=0.1)


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("pieces", [[], [OK[:-1]], [b"no HTTP\r\n\r\n"]], ids=["nothing", "cut off", "not HTTP"])
def test_what_is_no_answer_is_a_transport_error_and_no_timeout(client: httpx.Client, pieces: list[bytes]) -> None:
    with RawServer(pieces) as server, pytest.raises(httpx.TransportError) as fault:
        client.get(server.url)
    assert not isinstance(fault.value, httpx.TimeoutException | httpx.ConnectError)
