from __future__ import annotations

import fcntl
import resource
import socket
import ssl
from collections.abc import Iterator

import pytest

from bridge.web.hangup import ClientLeft, client_is_gone

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Our end of a connection, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def gone(connection: object) -> bool:
    return client_is_gone({"gunicorn.socket": connection})


def test_a_silent_client_is_there(pair: Pair) -> None:
    assert not gone(pair[0])


@pytest.mark.fault("clients that hang up")
def test_a_client_that_closed_its_connection_is_gone(pair: Pair) -> None:
    pair[1].close()
    assert gone(pair[0])


def test_a_client_is_seen_to_leave_whenever_it_is_looked_for(pair: Pair) -> None:
    left = ClientLeft({"gunicorn.socket": pair[0]})
    assert not left.is_set()
    assert not left.wait(0.01)
    pair[1].close()
    assert left.wait(0.01)
    assert left.is_set()


def test_a_client_that_sends_more_is_there_and_its_bytes_stay_unread(pair: Pair) -> None:
    pair[1].send(b"GET ")
    assert not gone(pair[0])
    assert pair[0].recv(10) == b"GET "


@pytest.mark.fault("clients that hang up")
def test_a_connection_that_was_reset_is_gone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        client.close()
        with ours:
            assert gone(ours)


def test_a_connection_that_we_closed_is_gone(pair: Pair) -> None:
    pair[0].close()
    assert gone(pair[0])


@pytest.mark.fault("clients that hang up")
def test_a_connection_with_a_high_file_number_is_asked_like_any_other(pair: Pair) -> None:
    """A busy worker has more than 1,024 open files. select() would fail for the later ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        with socket.socket(fileno=fcntl.fcntl(pair[0], fcntl.F_DUPFD, 2000)) as high:
            assert not gone(high)
            pair[1].close()
            assert gone(high)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_encrypted_connection_counts_as_there(pair: Pair) -> None:
    """Its bytes can't be looked at without reading them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with context.wrap_socket(pair[0], server_side=True, do_handshake_on_connect=False) as encrypted:
        pair[1].send(b"\x16")
        assert not gone(encrypted)


@pytest.mark.parametrize("environ", [{}, {"gunicorn.socket": None}, {"gunicorn.socket": object()}])
def test_a_client_counts_as_there_if_the_server_lends_no_socket(environ: dict[str, object]) -> None:
    assert not client_is_gone(environ)
