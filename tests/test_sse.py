from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import sse

CASES = {
    "one event": (b"data: a\n\n", [("", "a")]),
    "two events": (b"data: a\n\ndata: b\n\n", [("", "a"), ("", "b")]),
    "a name": (b"event: error\ndata: a\n\ndata: b\n\n", [("error", "a"), ("", "b")]),
    "the name after the data": (b"data: a\nevent: error\n\n", [("error", "a")]),
    "a name without data is no event": (b"event: error\n\ndata: b\n\n", [("", "b")]),
    "lines end in CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
    "lines end in CR": (b"data: a\r\rdata: b\r\r", [("", "a"), ("", "b")]),
    "line ends are mixed": (b"data: a\r\n\ndata: b\r\n\r\n", [("", "a"), ("", "b")]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [("", "a")]),
    "a byte order mark counts only at the start": (
        b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: c\n\n",
        [("", "a"), ("", "c")],
    ),
    "comments": (b": ping\n\n:\ndata: a\n: between\ndata: b\n\n", [("", "a\nb")]),
    "data on several lines": (b"data: {\ndata:  1}\n\n", [("", "{\n 1}")]),
    "data without a blank": (b"data:a\n\n", [("", "a")]),
    "data of blanks": (b"data:   a \n\n", [("", "  a ")]),
    "a line of data alone": (b"data\n\n", [("", "")]),
    "unknown fields": (b"id: 7\nretry: 10\nfoo: x\ndata: a\n\n", [("", "a")]),
    "blank lines between": (b"\n\n\ndata: a\n\n\n\n", [("", "a")]),
    "letters beyond ASCII": ("data: caf\u00e9 \U0001f600\u2028x\n\n".encode(), [("", "caf\u00e9 \U0001f600\u2028x")]),
    "bytes that are not UTF-8": (b"data: a\xffb\n\n", [("", "a\ufffdb")]),
    "an event cut off before its end": (b"data: a\n\ndata: b\n", [("", "a")]),
    "an event cut off in its line": (b"data: a\n\ndata: b", [("", "a")]),
    "nothing": (b"", []),
}


def cut(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("case", CASES)
def test_events_are_read(case: str) -> None:
    body, events = CASES[case]
    assert list(sse.decode_events([body])) == events


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("case", CASES)
def test_events_are_the_same_however_the_bytes_are_sliced(case: str, size: int) -> None:
    body, events = CASES[case]
    assert list(sse.decode_events(cut(body, size))) == events


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("case", CASES)
def test_events_are_the_same_when_cut_in_two_at_every_byte(case: str) -> None:
    body, events = CASES[case]
    for at in range(len(body) + 1):
        assert list(sse.decode_events([body[:at], b"", body[at:]])) == events


def test_an_event_is_yielded_before_the_next_one_arrives() -> None:
    def pieces() -> Iterator[bytes]:
        yield b"data: a\n\n"
        raise AssertionError("read on")

    assert next(sse.decode_events(pieces())) == ("", "a")


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_a_line_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        list(sse.decode_events(cut(b"data: 0123456789\n\n", 4), limit=10))


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_an_event_of_short_lines_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 10 bytes"):
        list(sse.decode_events([b"data: 012345\n" * 2], limit=10))


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_an_endless_line_is_refused_before_it_fills_the_memory() -> None:
    def endless() -> Iterator[bytes]:
        yield b"data: "
        for _ in range(11):
            yield b"x" * 1000
        raise AssertionError("read beyond the limit")

    with pytest.raises(ValueError, match="more than 10000 bytes"):
        list(sse.decode_events(endless(), limit=10_000))


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
def test_a_long_event_is_searched_once_however_small_its_pieces() -> None:
    """Searching all bytes again for each of the 40,000 pieces would exceed the time limit of a test."""
    body = b"data: " + b"x" * 40_000_000 + b"\n\n"
    ((_, data),) = sse.decode_events(cut(body, 1000))
    assert len(data) == 40_000_000


def test_a_value_is_encoded_as_a_frame_with_one_line() -> None:
    assert sse.encode_event({"text": "a\n\nb\r\u00e9"}) == 'data: {"text":"a\\n\\nb\\r\u00e9"}\n\n'.encode()


SEPARATORS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


def test_a_frame_is_one_line_also_for_clients_that_split_at_every_separator_of_unicode() -> None:
    (line, end) = sse.encode_event({SEPARATORS: SEPARATORS}).decode().splitlines()
    assert json.loads(line.removeprefix("data: ")) == {SEPARATORS: SEPARATORS}
    assert end == ""


@pytest.mark.parametrize("text", ["plain", "\u4f60\u597d", SEPARATORS, "\ud800", 'a"\\'])
def test_a_text_is_encoded_as_in_an_event(text: str) -> None:
    assert sse.encode_event(text) == b"data: " + sse.encode_text(text) + b"\n\n"


def test_a_lone_surrogate_can_be_encoded() -> None:
    assert sse.encode_event("\ud800") == b'data: "?"\n\n'


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(sent=st.lists(values, max_size=4), size=st.integers(1, 9))
def test_encoded_values_are_decoded_again(sent: list[object], size: int) -> None:
    body = b"".join(map(sse.encode_event, sent)) + sse.PING + sse.END
    read = [data for _, data in sse.decode_events(cut(body, size))]
    assert [json.loads(data) for data in read[:-1]] == sent
    assert read[-1] == sse.DONE
