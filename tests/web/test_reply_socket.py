from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from bridge.web.reply_socket import WRITE_SECONDS, ReplySocket, wait_for_client
from tests.waiting import SOON

REPLY = bytes(range(256)) * 8_000


@pytest.fixture
def pair() -> Iterator[tuple[ReplySocket, socket.socket]]:
    accepted, client = socket.socketpair()
    client.settimeout(SOON)
    with ReplySocket(accepted) as ours, client:
        yield ours, client


def read(client: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        got += client.recv(size - len(got))
    return got


def test_what_the_client_does_not_take_is_kept_in_order(pair: tuple[ReplySocket, socket.socket]) -> None:
    ours, client = pair
    ours.sendall(b"head")
    assert not ours.unsent
    ours.sendall(REPLY)
    ours.sendall(b"end")
    taken = len(b"head" + REPLY + b"end") - len(ours.unsent)
    assert 4 < taken < len(REPLY)
    got = read(client, taken)
    while ours.unsent:
        got += read(client, ours.send_unsent())
    assert got == b"head" + REPLY + b"end"


def test_a_turn_waits_until_the_client_has_taken_everything(pair: tuple[ReplySocket, socket.socket]) -> None:
    ours, client = pair
    wait_for_client({"gunicorn.socket": ours})
    got: list[bytes] = []
    reading = threading.Thread(target=lambda: got.append(read(client, len(REPLY))))
    reading.start()
    ours.sendall(REPLY)
    assert not ours.unsent
    reading.join()
    assert got == [REPLY]


def test_a_turn_does_not_wait_forever_for_a_client_that_reads_nothing(
    pair: tuple[ReplySocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = pair
    ours.waits = True
    times = iter([0.0, 1.0, WRITE_SECONDS / 2, WRITE_SECONDS + 1.0, WRITE_SECONDS * 2.0])
    monkeypatch.setattr("bridge.web.reply_socket.time.monotonic", lambda: next(times))
    monkeypatch.setattr("bridge.web.reply_socket.POLL_MILLISECONDS", 0)
    with pytest.raises(BrokenPipeError):
        ours.sendall(REPLY)
    assert not ours.unsent
    assert next(times) == WRITE_SECONDS * 2.0


def test_other_sockets_are_left_as_they_are() -> None:
    wait_for_client({})
    wait_for_client({"gunicorn.socket": object()})
