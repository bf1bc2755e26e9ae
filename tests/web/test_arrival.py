"""Whether a request is whole is known from its bytes, wherever they are cut."""

from __future__ import annotations

import pytest

from bridge.web.arrival import AHEAD, LONGEST_HEAD, MOST_CHUNKS, SLOWEST, Arrival, Gathered

LARGEST = 100
LINE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
CHUNKED = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
PAUSE, SILENCE = 10, 95

WHOLE = {
    "no body": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length": LINE + b"Content-Length: 7\r\n\r\n{'a':1}",
    "a length of nothing": LINE + b"Content-Length: 0\r\n\r\n",
    "a length in capitals, behind a tab": LINE + b"CONTENT-LENGTH:\t7 \r\n\r\n{'a':1}",
    "an empty line in the body": LINE + b"Content-Length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
    "a length with zeros before": LINE + b"Content-Length: " + b"0" * 20 + b"7\r\n\r\n{'a':1}",
    "no chunk": CHUNKED + b"0\r\n\r\n",
    "chunks": CHUNKED + b"5\r\nhello\r\nA\r\n0123456789\r\n0\r\n\r\n",
    "a chunk that looks like the end": CHUNKED + b"7\r\n0\r\n\r\n\r\n\r\n0\r\n\r\n",
    "chunks with extensions": CHUNKED + b"5;a=b\r\nhello\r\n5 ; c\r\nagain\r\n0;d\r\n\r\n",
    "chunks with a trailer": CHUNKED + b"5\r\nhello\r\n0\r\nX-A: b\r\nX-C: d\r\n\r\n",
    "chunks with zeros before": CHUNKED + b"0" * 20 + b"5\r\nhello\r\n" + b"0" * 20 + b"\r\n\r\n",
    "codings in two lines": LINE + b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "packed chunks": LINE + b"Transfer-Encoding: gzip, Chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n",
}
# gunicorn refuses these by their heads; nobody waits for more of them.
ODD = {
    "two lengths": LINE + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "a length and chunks": LINE + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a length with a sign": LINE + b"Content-Length: +5\r\n\r\n",
    "an unknown coding": LINE + b"Transfer-Encoding: identity\r\n\r\n",
    "a chunk of no size": CHUNKED + b"five\r\n",
    "a chunk of a negative size": CHUNKED + b"-5\r\n",
    "more than may come": LINE + b"Content-Length: %d\r\n\r\n" % (LARGEST + 1),
    "more digits than a number may have": LINE + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
}


def arrived(*pieces: bytes) -> Arrival:
    arrival = Arrival(0, LARGEST)
    for piece in pieces:
        arrival.take(piece, 0)
    return arrival


@pytest.mark.parametrize("case", WHOLE)
def test_a_request_is_whole_with_its_last_byte_and_not_before(case: str) -> None:
    sent = WHOLE[case]
    byte_by_byte = arrived()
    for place in range(len(sent)):
        assert not byte_by_byte.whole, sent[:place]
        byte_by_byte.take(sent[place : place + 1], 0)
    assert byte_by_byte.whole
    assert byte_by_byte.received == sent


@pytest.mark.parametrize("case", WHOLE)
def test_it_may_come_in_two_pieces_or_with_the_next_one_behind_it(case: str) -> None:
    sent = WHOLE[case]
    assert all(arrived(sent[:place], sent[place:]).whole for place in range(len(sent)))
    together = arrived(sent + LINE)
    assert together.whole
    assert together.received == sent + LINE


@pytest.mark.parametrize("case", ODD)
def test_what_is_refused_anyway_is_not_waited_for(case: str) -> None:
    sent = ODD[case]
    assert not arrived(sent[:-2]).whole
    assert arrived(sent).whole


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
def test_what_does_not_end_is_not_gathered_for_ever(begun: bytes, more: bytes) -> None:
    arrival = Arrival(0, 2 * LONGEST_HEAD if len(more) > LONGEST_HEAD // 8 else LARGEST)
    arrival.take(begun, 0)
    assert not arrival.whole
    arrival.take(more, 0)
    arrival.take(b"1\r\n" + b"x" * (LARGEST + AHEAD), 0)
    assert arrival.whole


def test_what_is_around_chunks_counts_for_nothing() -> None:
    size = 1_000
    arrival = Arrival(0, 100 * size)
    arrival.take(CHUNKED + (b"%X\r\n%s\r\n" % (size, b"x" * size)) * 100, 0)
    assert len(arrival.received) > len(CHUNKED) + 100 * size
    assert not arrival.whole
    arrival.take(b"0\r\n\r\n", 0)
    assert arrival.whole


@pytest.mark.parametrize(
    ("sent", "wants"),
    [
        (LINE + b"Expect: 100-Continue\r\nContent-Length: 5\r\n\r\n", True),
        (LINE + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n", True),
        (LINE + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n", False),
        (LINE + b"Expect: 100-continue\r\nContent-Length: 101\r\n\r\n", False),
        (LINE.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n", False),
        (LINE + b"Expect: more\r\nContent-Length: 5\r\n\r\n", False),
        (LINE + b"Content-Length: 5\r\n\r\n", False),
    ],
)
def test_a_client_that_waits_for_a_word_before_its_body_is_known(sent: bytes, wants: bool) -> None:
    assert arrived(sent).wants_go_ahead is wants


def test_a_client_may_be_silent_before_it_begins_but_not_pause_for_as_long_within() -> None:
    silent = Arrival(0, LARGEST)
    assert not silent.is_overdue(SILENCE, PAUSE, SILENCE)
    assert silent.is_overdue(SILENCE + 1, PAUSE, SILENCE)
    silent.take(LINE, SILENCE)
    assert not silent.is_overdue(SILENCE + PAUSE, PAUSE, SILENCE)
    assert silent.is_overdue(SILENCE + PAUSE + 1, PAUSE, SILENCE)


def test_who_drips_is_too_slow_and_who_sends_steadily_is_not() -> None:
    drips, sends = Arrival(0, 10**7), Arrival(0, 10**7)
    for second in range(60):
        drips.take(b"x", second)
        sends.take(b"x" * SLOWEST, second)
    assert drips.is_overdue(60, PAUSE, SILENCE)
    assert not sends.is_overdue(60, PAUSE, SILENCE)


def test_what_was_gathered_is_read_like_a_socket_that_ends() -> None:
    gathered = Gathered(bytearray(b"hello"))
    assert gathered.recv(2) == b"he"
    assert gathered.recv(100) == b"llo"
    assert not gathered.ran_out
    assert gathered.recv(100) == b""
    assert gathered.ran_out


def test_what_was_gathered_is_let_go_of_with_its_rest() -> None:
    received = bytearray(b"hello")
    gathered = Gathered(received)
    assert gathered.recv(2) == b"he"
    with pytest.raises(BufferError):
        received.clear()
    assert gathered.rest() == b"llo"
    received.clear()
    assert gathered.rest() == b""
