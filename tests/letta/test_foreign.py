from __future__ import annotations

import pytest

from bridge.letta.foreign import ForeignBody, end_to_end_headers


@pytest.mark.parametrize(
    "name",
    ["connection", "Keep-Alive", "Proxy-Authenticate", "TE", "Trailer", "Transfer-Encoding", "UPGRADE", "X-Mine"],
)
def test_headers_of_the_connection_are_left_out(name: str) -> None:
    fields = [("Content-Type", "text/plain"), ("Connection", "close, x-mine"), (name, "1"), ("ETag", "2")]
    assert end_to_end_headers(fields) == [("Content-Type", "text/plain"), ("ETag", "2")]


def test_a_header_that_comes_twice_stays_two_headers() -> None:
    fields = [("Link", "a"), ("Link", "b")]
    assert end_to_end_headers(fields) == fields


def test_a_header_of_several_lines_is_left_out() -> None:
    assert end_to_end_headers([("X-One", "a\r\n b"), ("X-Two", "b")]) == [("X-Two", "b")]


@pytest.mark.parametrize("name", ["X One", "", "X:One", "caf\u00e9"])
def test_a_header_with_a_malformed_name_is_left_out(name: str) -> None:
    assert end_to_end_headers([(name, "a")]) == []


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ([("Content-Length", "5")], True),
        ([("content-length", "5"), ("Transfer-Encoding", "chunked")], False),
        ([("Content-Length", "-5")], False),
        ([("Content-Length", "5, 5")], False),
        ([("Content-Length", "\u0665")], False),
    ],
)
def test_only_the_certain_length_of_a_body_is_kept(fields: list[tuple[str, str]], kept: bool) -> None:
    assert end_to_end_headers(fields) == (fields if kept else [])


def test_a_body_can_be_closed_before_its_first_piece() -> None:
    closed: list[bool] = []
    ForeignBody([b"one"], lambda: closed.append(True)).close()
    assert closed == [True]


def test_a_body_is_read_piece_by_piece() -> None:
    assert list(ForeignBody([b"one", b"two"])) == [b"one", b"two"]
