"""The writer sends what gunicorn's Response sends, byte for byte, in fewer pieces."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http import wsgi  # type: ignore[import-untyped]

from bridge.web import reply_writer
from bridge.web.reply_writer import ReplyWriter

NOW = 1_700_000_000.9
LENGTH = ("Content-Length", "5")
PLAIN = ("X-A", "b")
STATUSES = ("200 OK", "204 No Content", "304 Not Modified", "404 Not Found", "101 Switching Protocols")
HEADERS: dict[str, list[tuple[str, str]]] = {
    "none": [],
    "a length": [PLAIN, LENGTH],
    "no length": [PLAIN, ("X-A", " c \t"), ("Content-Type", "text/event-stream")],
    "headers of the connection": [("Connection", "upgrade"), ("Upgrade", "websocket"), ("Keep-Alive", "5"), PLAIN],
    "letters of Latin": [("X-A", "\xe9")],
}
PIECES: dict[str, list[bytes]] = {
    "nothing": [],
    "an empty piece": [b""],
    "one": [b"hello"],
    "two": [b"hel", b"lo"],
    "empty ones between": [b"", b"hel", b"", b"lo"],
    "too many": [b"hel", b"lo, and", b"more"],
}


class Sent:
    """In the place of a socket."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.takes_all = True
        self.fault: OSError | None = None

    def sendall(self, data: bytes) -> None:
        self.pieces.append(bytes(data))

    def send_at_once(self, data: bytes) -> bool:
        if self.fault:
            raise self.fault
        self.pieces.append(bytes(data))
        return self.takes_all


@pytest.fixture(autouse=True)
def time_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: NOW)


def write(
    kind: Callable[..., Any],
    status: str = "200 OK",
    headers: str = "a length",
    pieces: str = "one",
    method: str = "GET",
    version: tuple[int, int] = (1, 1),
    closes: bool = False,
) -> tuple[list[bytes], bool]:
    """Returns what is sent, and whether the connection is closed after it."""
    sent = Sent()
    request = SimpleNamespace(method=method, version=version, should_close=lambda: closes)
    response = kind(request, sent, Config())
    response.start_response(status, HEADERS[headers])
    for piece in PIECES[pieces]:
        response.write(piece)
    response.close()
    return sent.pieces, response.should_close()


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("status", STATUSES)
def test_the_same_bytes_are_sent(status: str, headers: str, pieces: str) -> None:
    for method, version, closes in (
        ("GET", (1, 1), False),
        ("POST", (1, 1), True),
        ("HEAD", (1, 1), False),
        ("GET", (1, 0), False),
    ):
        ours, theirs = (
            write(kind, status, headers, pieces, method, version, closes) for kind in (ReplyWriter, wsgi.Response)
        )
        assert (b"".join(ours[0]), ours[1]) == (b"".join(theirs[0]), theirs[1])


@pytest.mark.parametrize("header", [("X A", "b"), ("X-A", "b\r\nX-Evil: 1"), ("X-A", "\u0430"), ("X-A", "b\x00")])
def test_the_same_headers_are_refused(header: tuple[str, str]) -> None:
    for kind in (ReplyWriter, wsgi.Response):
        request = SimpleNamespace(method="GET", version=(1, 1), should_close=lambda: False)
        with pytest.raises(wsgi.InvalidResponseHeader if header[0] == "X-A" else wsgi.InvalidResponseHeaderName):
            kind(request, Sent(), Config()).start_response("200 OK", [header])


def test_a_whole_reply_is_sent_at_once_and_each_frame_of_a_stream() -> None:
    assert len(write(ReplyWriter)[0]) == 1
    frames, _ = write(ReplyWriter, headers="no length", pieces="two")
    assert [frame[-8:] for frame in frames] == [b"3\r\nhel\r\n", b"2\r\nlo\r\n", b"0\r\n\r\n"]


def test_an_empty_first_piece_sends_the_head() -> None:
    sent, _ = write(ReplyWriter, headers="no length", pieces="empty ones between")
    assert sent[0].endswith(
        b"Transfer-Encoding: chunked\r\nX-A: b\r\nX-A: c\r\nContent-Type: text/event-stream\r\n\r\n"
    )


def test_the_date_is_made_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[int] = []
    monkeypatch.setattr(reply_writer, "http_date", lambda second: seconds.append(second) or str(second))
    for now in (5.1, 5.9, 6.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        assert f"Date: {int(now)}\r\n".encode() in write(ReplyWriter)[0][0]
    assert seconds == [5, 6]


# --- pieces that another thread writes --------------------------------------------------------------------------


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def stream(sent: Sent) -> ReplyWriter:
    """A reply without a length."""
    request = SimpleNamespace(method="POST", version=(1, 1), should_close=lambda: False)
    made = ReplyWriter(request, sent, Config())
    made.start_response("200 OK", [PLAIN])
    return made


def test_another_thread_writes_pieces_as_the_thread_of_the_request_does(stream: ReplyWriter, sent: Sent) -> None:
    assert stream.write_at_once(b"hel")
    assert stream.write_at_once(b"lo")
    stream.close()
    assert sent.pieces[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert [piece[-8:] for piece in sent.pieces] == [b"3\r\nhel\r\n", b"2\r\nlo\r\n", b"0\r\n\r\n"]


def test_an_empty_piece_of_another_thread_is_not_the_end(stream: ReplyWriter, sent: Sent) -> None:
    stream.write(b"hel")
    assert stream.write_at_once(b"")
    assert len(sent.pieces) == 1


def test_what_the_client_did_not_take_is_sent_with_the_next_write_even_an_empty_one(
    stream: ReplyWriter, sent: Sent
) -> None:
    stream.write(b"hel")
    sent.takes_all = False
    assert not stream.write_at_once(b"lo")
    stream.write(b"")
    stream.write(b"")
    assert sent.pieces[1:] == [b"2\r\nlo\r\n", b""]


@pytest.mark.parametrize("after", [lambda stream: stream.write(b"more"), ReplyWriter.close])
def test_a_fault_of_another_thread_is_raised_in_the_thread_of_the_request(
    stream: ReplyWriter, sent: Sent, after: Callable[[ReplyWriter], None]
) -> None:
    stream.write(b"hel")
    sent.fault = ConnectionResetError()
    assert not stream.write_at_once(b"lo")
    sent.fault = None
    assert not stream.write_at_once(b"more"), "after a gap nothing may follow"
    with pytest.raises(ConnectionResetError):
        after(stream)
    assert len(sent.pieces) == 1
