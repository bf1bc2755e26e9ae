from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from flask import Request, Response
from werkzeug.test import EnvironBuilder

from bridge import errors
from bridge.letta.foreign import ForeignBody
from bridge.letta.gateway import ForeignAnswer
from bridge.web import hangup
from bridge.web.forwarding import forwarded_response
from bridge.web.room import SMALL, Room
from tests.waiting import SOON

BASE = "http://letta.test:8283"
JSON = ("Content-Type", "application/json")
EVENTS = ("Content-Type", "text/event-stream; charset=utf-8")
BROKEN = errors.LettaUnreachable("The connection broke.")
Headers = Sequence[tuple[str, str]]


class Letta:
    """An answer of Letta that a test dictates: pieces of its body, and an exception with which it breaks off."""

    def __init__(self, *pieces: bytes | BaseException, status: int = 200, headers: Headers = (JSON,)) -> None:
        self.closed, self.aborted = 0, threading.Event()
        self.answer = ForeignAnswer(status, headers, ForeignBody(self._read(pieces), self._close, self.aborted.set))

    def _close(self) -> None:
        self.closed += 1

    def _read(self, pieces: Sequence[bytes | BaseException]) -> Iterator[bytes]:
        for piece in pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece


def forward(
    letta: Letta,
    *,
    base_url: str = BASE,
    prefix: str = "",
    rewrite: Callable[[Any], Any] | None = None,
    limit: int = 1000,
    connection: socket.socket | None = None,
    method: str = "GET",
    room: Room | None = None,
) -> Response:
    environ = EnvironBuilder(method=method).get_environ()
    environ["gunicorn.socket"] = connection
    return forwarded_response(
        letta.answer,
        Request(environ),
        base_url=base_url,
        prefix=prefix,
        rewrite=rewrite,
        limit=limit,
        room=room or Room(),
    )


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The bridge's end of a client's connection, and the client's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


# --- what is passed on ------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 307, 404, 409, 422, 500, 503])
def test_status_and_body_are_lettas(status: int) -> None:
    letta = Letta(b'{"detail": ', b'"x"}', status=status, headers=(JSON, ("Content-Length", "15")))
    response = forward(letta)
    assert (response.status_code, response.get_data()) == (status, b'{"detail": "x"}')
    assert list(response.headers) == [JSON, ("Content-Length", "15")]
    response.close()
    assert letta.closed == 1


def test_an_answer_without_a_type_gets_none() -> None:
    response = forward(Letta(status=204, headers=()))
    assert (response.status_code, response.get_data(), list(response.headers)) == (204, b"", [])


def test_headers_of_lettas_host_are_not_passed_on() -> None:
    own = (
        *("Set-Cookie", "Server", "Date", "Strict-Transport-Security", "Alt-Svc", "WWW-Authenticate"),
        *("Access-Control-Allow-Origin", "access-control-allow-credentials"),
    )
    passed = [JSON, ("X-One", "1"), ("Link", "a"), ("Link", "b"), ("ETag", "2")]
    assert list(forward(Letta(headers=[*((name, "x") for name in own), *passed])).headers) == passed


def test_pieces_are_sent_as_they_arrive() -> None:
    pieces = iter(forward(Letta(b"one", b"two", headers=(EVENTS,))).response)
    assert [next(pieces) for _ in range(3)] == [b"", b"one", b"two"]


def test_the_headers_of_a_stream_forbid_buffers_and_caches() -> None:
    headers = forward(Letta(headers=(EVENTS, ("Cache-Control", "max-age=60")))).headers
    assert (headers["X-Accel-Buffering"], headers["Cache-Control"]) == ("no", "no-cache, no-store")
    assert "X-Accel-Buffering" not in forward(Letta()).headers


# --- memory -----------------------------------------------------------------------------------------------


def test_large_answers_are_changed_one_at_a_time() -> None:
    at_once = [0, 0]

    def rewrite(value: Any) -> Any:
        at_once[0] += 1
        at_once[1] = max(at_once)
        time.sleep(0.05)
        at_once[0] -= 1
        return value

    body = json.dumps(["x" * SMALL]).encode()
    threads = [
        threading.Thread(target=lambda: forward(Letta(body), rewrite=rewrite, limit=2 * SMALL)) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert at_once == [0, 1]


def test_an_answer_that_is_changed_counts_until_it_was_sent() -> None:
    room = Room()
    response = forward(Letta(b"[1]"), rewrite=lambda value: value, room=room)
    assert room.held == 3
    response.close()
    assert room.held == 0


def test_an_answer_for_which_there_is_no_room_is_refused() -> None:
    room, letta = Room(most=2 * SMALL), Letta(json.dumps(["x" * 3 * SMALL]).encode())
    with pytest.raises(errors.TooManyBytes):
        forward(letta, rewrite=lambda value: value, limit=4 * SMALL, room=room)
    assert (room.held, letta.closed > 0) == (0, True)


# --- redirects --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("location", "sent"),
    [
        (f"{BASE}/v1/agents/?limit=1", "/letta/v1/agents/?limit=1"),
        ("https://LETTA.test:8283/v1/agents/", "/letta/v1/agents/"),
        ("/v1/agents/#top", "/letta/v1/agents/#top"),
        ("//letta.test:8283/v1/agents/", "/letta/v1/agents/"),
        (f"{BASE}//elsewhere.test/x", "/letta//elsewhere.test/x"),
        ("http://letta.test:3000/v1/agents/", "http://letta.test:3000/v1/agents/"),
        ("https://elsewhere.test/v1/agents/", "https://elsewhere.test/v1/agents/"),
        ("//elsewhere.test/v1/agents/", "//elsewhere.test/v1/agents/"),
        ("../agents/", "../agents/"),
        ("http://[", "http://["),
        ("http://letta.test:port/", "http://letta.test:port/"),
    ],
)
def test_a_location_at_letta_points_to_the_bridge(location: str, sent: str) -> None:
    letta = Letta(status=307, headers=(("location", location),))
    assert forward(letta).headers["Location"] == sent


@pytest.mark.parametrize(
    ("base_url", "location"),
    [
        ("https://letta.test/api", "http://letta.test/api/v1/agents/"),
        ("https://letta.test/api", "https://letta.test:443/v1/agents/"),
        ("http://letta.test:80", "http://letta.test/v1/agents/"),
    ],
)
def test_a_location_is_recognised_behind_proxies_too(base_url: str, location: str) -> None:
    letta = Letta(status=307, headers=(("Location", location),))
    assert forward(letta, base_url=base_url, prefix="/bridge").headers["Location"] == "/bridge/letta/v1/agents/"


# --- answers that are rewritten ---------------------------------------------------------------------------


def test_a_rewritten_answer_has_its_own_length() -> None:
    letta = Letta(b'{"a": 1,', b' "b": 2}', status=201, headers=(JSON, ("Content-Length", "16"), ("ETag", "x")))
    response = forward(letta, rewrite=lambda value: {"a": value["a"], "c": "\u00e9"})
    assert json.loads(response.get_data()) == {"a": 1, "c": "\u00e9"}
    assert response.headers.getlist("Content-Length") == [str(len(response.get_data()))]
    assert response.headers["ETag"] == "x"
    assert letta.closed


def test_an_answer_that_needs_no_change_is_sent_as_it_came() -> None:
    body = b'{ "a":1.0, "b" : "\\u00e9" }'
    response = forward(Letta(body), rewrite=lambda value: value)
    assert (response.get_data(), response.headers["Content-Length"]) == (body, str(len(body)))


@pytest.mark.parametrize(
    "letta",
    [
        Letta(b"[]", status=404),
        Letta(b"[]", status=302),
        Letta(b"[]", headers=(("Content-Type", "text/plain"),)),
        Letta(b"[]", headers=(EVENTS,)),
        Letta(b"[]", headers=()),
    ],
)
def test_only_the_json_of_a_success_is_rewritten(letta: Letta) -> None:
    assert forward(letta, rewrite=lambda value: "rewritten").get_data() == b"[]"


def test_an_answer_to_head_is_not_rewritten() -> None:
    letta = Letta(headers=(JSON, ("Content-Length", "9")))
    assert forward(letta, rewrite=lambda value: "rewritten", method="HEAD").headers["Content-Length"] == "9"


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/problem+json"])
def test_json_is_recognised_with_parameters(kind: str) -> None:
    response = forward(Letta(b"[]", headers=(("Content-Type", kind),)), rewrite=lambda value: "x")
    assert response.get_data() == b'"x"'


@pytest.mark.parametrize(
    ("letta", "words"),
    [
        (Letta(b'{"a": '), "LETTA_BASE_URL"),
        (Letta(b""), "LETTA_BASE_URL"),
        (Letta(b"\xff"), "LETTA_BASE_URL"),
        (Letta(b"[" * 100_000), "more than 1000 bytes"),
        (Letta(*[b"[1,"] * 400), "more than 1000 bytes"),
        (Letta(b"[]", headers=(JSON, ("Content-Encoding", "gzip"))), "LETTA_BASE_URL"),
        (Letta(b"[]", BROKEN), "broke"),
    ],
)
def test_an_answer_that_cannot_be_rewritten_is_not_passed_on(letta: Letta, words: str) -> None:
    with pytest.raises(errors.LettaError, match=words):
        forward(letta, rewrite=lambda value: value)
    assert letta.closed


def test_an_answer_is_closed_when_rewriting_fails() -> None:
    letta = Letta(b"[]")
    with pytest.raises(ZeroDivisionError):
        forward(letta, rewrite=lambda value: 1 // 0)
    assert letta.closed


# --- endings ----------------------------------------------------------------------------------------------


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("kind", [JSON, EVENTS])
def test_a_body_that_breaks_off_breaks_the_clients_connection(
    pair: tuple[socket.socket, socket.socket], kind: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    letta = Letta(b"one", BROKEN, headers=(kind,))
    with caplog.at_level(logging.WARNING):
        assert list(forward(letta, connection=pair[0]).response) == [b"", b"one"]
    pair[1].settimeout(SOON)
    assert pair[1].recv(10) == b""
    assert BROKEN.message in caplog.text


@pytest.mark.fault("the stream of Letta breaks at any place")
def test_under_another_server_the_failure_is_raised() -> None:
    pieces = iter(forward(Letta(b"one", BROKEN)).response)
    assert [next(pieces), next(pieces)] == [b"", b"one"]
    with pytest.raises(errors.LettaUnreachable):
        next(pieces)


@pytest.mark.fault("clients that hang up")
@pytest.mark.parametrize("read", [0, 1, 2, 3])
def test_the_answer_is_closed_wherever_the_client_leaves(read: int) -> None:
    letta = Letta(b"one", b"two", headers=(EVENTS,))
    response = forward(letta)
    pieces = iter(response.response)
    for _ in range(read):
        next(pieces)
    response.close()
    assert letta.closed


@pytest.mark.fault("clients that hang up")
def test_a_client_that_leaves_while_letta_is_silent_ends_the_stream(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(hangup, "TICK", 0.01)
    letta = Letta()

    def read() -> Iterator[bytes]:
        yield b"one"
        pair[1].close()
        assert letta.aborted.wait(SOON)
        raise BROKEN

    letta.answer = ForeignAnswer(200, [EVENTS], ForeignBody(read(), letta._close, letta.aborted.set))
    assert list(forward(letta, connection=pair[0]).response) == [b"", b"one"]
    assert caplog.text == ""


@pytest.mark.fault("no thread left for a moment")
def test_a_stream_is_passed_on_without_a_thread_that_watches_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert list(forward(Letta(b"one", headers=(EVENTS,))).response) == [b"", b"one"]


def test_the_thread_that_watches_a_client_ends_with_the_stream() -> None:
    assert list(forward(Letta(b"one", headers=(EVENTS,))).response) == [b"", b"one"]
    for thread in threading.enumerate():
        if thread.name == "hangup":
            thread.join(SOON)
            assert not thread.is_alive()
