"""The bytes of a request show whether it is complete, in whatever pieces they arrive."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.http.parser import RequestParser  # type: ignore[import-untyped]

from bridge.errors import BodyTooLarge, BridgeError
from bridge.web.arrival import LONGEST_HEAD, MOST_CHUNKS, READ_AHEAD, Arrival, ArrivedBody, ReceivedBytes
from bridge.web.pace import SLOWEST_RATE
from bridge.web.room import SMALL

MAX_BODY = SMALL + 100
LINE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
PAUSE, SILENCE = 10, 95

COMPLETE = {
    "no body": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length": LINE + b"Content-Length: 7\r\n\r\n{'a':1}",
    "a length of zero": LINE + b"Content-Length: 0\r\n\r\n",
    "a length in capitals, behind a tab": LINE + b"CONTENT-LENGTH:\t7 \r\n\r\n{'a':1}",
    "an empty line in the body": LINE + b"Content-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
    "a length with zeros before": LINE + b"Content-Length: " + b"0" * 20 + b"7\r\n\r\n{'a':1}",
    "no chunks": CHUNKED + b"0\r\n\r\n",
    "chunks": CHUNKED + b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
    "a chunk that looks like the end": CHUNKED + b"7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",
    "chunks with extensions": CHUNKED + b"5;a=b\r\nhello\r\n5 ; c\r\nagain\r\n0;d\r\n\r\n",
    "chunks with a trailer": CHUNKED + b"5\r\nhello\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n",
    "chunks with zeros before": CHUNKED + b"0" * 20 + b"5\r\nhello\r\n" + b"0" * 20 + b"\r\n\r\n",
    "codings in two lines": LINE + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "compressed chunks": LINE + b"Transfer-Encoding: gzip, Chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n",
}
# gunicorn or the app rejects these by what has arrived, so the worker does not wait for the rest.
REJECTED = {
    "two lengths": LINE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "a length and chunks": LINE + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a length with a sign": LINE + b"Content-Length: +5\r\n\r\n",
    "an unknown coding": LINE + b"Transfer-Encoding: identity\r\n\r\n",
    "a chunk without a size": CHUNKED + b"five\r\n",
    "a chunk of a negative size": CHUNKED + b"-5\r\n",
    "more than is allowed": LINE + b"Content-Length: %d\r\n\r\n" % (MAX_BODY + 1),
    "more digits than a number may have": LINE + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
}


def allow(size: int) -> Callable[[bytes], int]:
    return lambda head: size


def arrived(*pieces: bytes) -> Arrival:
    arrival = Arrival(0, allow(MAX_BODY))
    for piece in pieces:
        arrival.add(piece, 0)
    return arrival


@pytest.mark.parametrize("case", COMPLETE)
def test_a_request_is_complete_with_its_last_byte_and_not_before(case: str) -> None:
    sent = COMPLETE[case]
    byte_by_byte = arrived()
    for place in range(len(sent)):
        assert not byte_by_byte.is_complete, sent[:place]
        byte_by_byte.add(sent[place : place + 1], 0)
    assert byte_by_byte.is_complete
    assert byte_by_byte.received == sent


@pytest.mark.parametrize("case", COMPLETE)
def test_a_request_may_arrive_in_two_pieces_or_together_with_the_next_one(case: str) -> None:
    sent = COMPLETE[case]
    assert all(arrived(sent[:place], sent[place:]).is_complete for place in range(len(sent)))
    together = arrived(sent + LINE)
    assert together.is_complete
    assert together.received == sent + LINE


@pytest.mark.parametrize("case", REJECTED)
def test_a_request_that_will_be_rejected_counts_as_complete(case: str) -> None:
    sent = REJECTED[case]
    assert not arrived(sent[:-2]).is_complete
    assert arrived(sent).is_complete


@pytest.mark.parametrize(
    ("begun", "more"),
    [
        (LINE, b"X-A: " + b"b" * LONGEST_HEAD),
        (CHUNKED, b"50\r\n" + b"x" * 80 + b"\r\n50\r\n"),
        (CHUNKED, b"5;" + b"x" * 10_000),
        (CHUNKED, b"1\r\nx\r\n" * MOST_CHUNKS),
        (CHUNKED, (b"1;" + b"x" * 1_000 + b"\r\nx\r\n") * (LONGEST_HEAD // 1_000)),
        (CHUNKED + b"0\r\n", b"X-A: b\r\n" * (LONGEST_HEAD // 8)),
    ],
    ids=["a head", "chunks", "the line of a chunk", "tiny chunks", "long lines of chunks", "a trailer"],
)
def test_a_request_without_an_end_counts_as_complete_at_some_size(begun: bytes, more: bytes) -> None:
    arrival = Arrival(0, allow(2 * LONGEST_HEAD if len(more) > LONGEST_HEAD // 8 else MAX_BODY))
    arrival.add(begun, 0)
    assert not arrival.is_complete
    arrival.add(more, 0)
    arrival.add(b"1\r\n" + b"x" * (MAX_BODY + READ_AHEAD), 0)
    assert arrival.is_complete


def test_the_lines_around_chunks_do_not_count_as_body() -> None:
    size = 1_000
    arrival = Arrival(0, allow(100 * size))
    arrival.add(CHUNKED + (b"%X\r\n%s\r\n" % (size, b"x" * size)) * 100, 0)
    assert len(arrival.received) > len(CHUNKED) + 100 * size
    assert not arrival.is_complete
    arrival.add(b"0\r\n\r\n", 0)
    assert arrival.is_complete


@pytest.mark.parametrize(
    ("sent", "waits"),
    [
        (LINE + b"Expect: 100-Continue\r\nContent-Length: 5\r\n\r\n", True),
        (LINE + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", True),
        (LINE + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", False),
        (LINE + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1), False),
        (LINE.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", False),
        (LINE + b"Expect: more\r\nContent-Length: 5\r\n\r\n", False),
        (LINE + b"Content-Length: 5\r\n\r\n", False),
    ],
)
def test_a_client_that_waits_for_100_continue_is_recognised(sent: bytes, waits: bool) -> None:
    assert arrived(sent).expects_continue is waits


def test_a_client_may_be_silent_before_its_request_for_longer_than_within_it() -> None:
    silent = Arrival(0, allow(MAX_BODY))
    assert not silent.is_overdue(SILENCE, PAUSE, SILENCE)
    assert silent.is_overdue(SILENCE + 1, PAUSE, SILENCE)
    silent.add(LINE, SILENCE)
    assert not silent.is_overdue(SILENCE + PAUSE, PAUSE, SILENCE)
    assert silent.is_overdue(SILENCE + PAUSE + 1, PAUSE, SILENCE)


def test_a_client_that_sends_single_bytes_is_too_slow() -> None:
    single_bytes, steady = Arrival(0, allow(10**7)), Arrival(0, allow(10**7))
    for second in range(60):
        single_bytes.add(b"x", second)
        steady.add(b"x" * SLOWEST_RATE, second)
    assert single_bytes.is_overdue(60, PAUSE, SILENCE)
    assert not steady.is_overdue(60, PAUSE, SILENCE)


def test_received_bytes_are_read_like_a_socket_that_is_closed_after_them() -> None:
    received = ReceivedBytes(bytearray(b"hello"))
    assert received.recv(2) == b"he"
    assert received.recv(100) == b"llo"
    assert not received.ended_early
    assert received.recv(100) == b""
    assert received.ended_early


def test_taking_the_rest_of_received_bytes_frees_them() -> None:
    data = bytearray(b"hello")
    received = ReceivedBytes(data)
    assert received.recv(2) == b"he"
    with pytest.raises(BufferError):
        data.clear()
    assert received.take_rest() == b"llo"
    data.clear()
    assert received.take_rest() == b""


class World:
    """A request of known length, parsed by gunicorn from bytes that have arrived."""

    def __init__(self, arrived: bytes, refusal: BridgeError | None = None) -> None:
        self.received = ReceivedBytes(bytearray(arrived), refusal)
        self.parser = RequestParser(Config(), self.received, ("192.0.2.1", 5))
        self.body = ArrivedBody(next(self.parser).body, self.parser.unreader)


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n"
BODY = bytes(range(250)) * 800


@pytest.mark.parametrize(
    "reads", [[200_000], [None], [300_000], [10, 199_990], [5_000] * 40, [199_999, 1], [0, 200_000]]
)
def test_an_arrived_body_is_read_like_gunicorns(reads: list[int | None]) -> None:
    world = World(HEAD + BODY + HEAD)
    assert b"".join(world.body.read(size) for size in reads) == BODY
    assert world.body.read(1) == world.body.read() == b""
    assert world.parser.finish_body()
    assert world.parser.unreader.take_buffered() + world.received.take_rest() == HEAD


def test_a_body_that_has_not_arrived_whole_is_read_as_far_as_it_has() -> None:
    world = World(HEAD + BODY[:150_000])
    assert world.body.read(200_000) == BODY[:150_000]
    assert world.received.ended_early


def test_the_rest_of_a_refused_body_raises_the_refusal() -> None:
    world = World(HEAD + BODY[:150_000], BodyTooLarge("Too large."))
    with pytest.raises(BodyTooLarge):
        world.body.read(200_000)


def test_lines_of_an_arrived_body_are_left_to_gunicorn() -> None:
    world = World(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na\nb\n")
    assert world.body.readline() == b"a\n"
    assert world.body.read(2) == b"b\n"
