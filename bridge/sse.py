"""Encodes and decodes server-sent events. No other module knows what an event looks like as bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any

DONE = "[DONE]"  # the data of the last event of a reply
END = b"data: [DONE]\n\n"  # that event as bytes

_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELD = b"data: "
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode_comment(text: str) -> bytes:
    """Returns a comment, which clients ignore. Line ends in the text become blanks: each would begin a line."""
    return b": " + " ".join(text.splitlines()).encode("utf-8", "replace") + b"\n\n"


PING = encode_comment("ping")  # keeps a quiet stream open


def encode_event(value: Any) -> bytes:
    """Returns the event with this value as JSON."""
    return b"data: " + _encode_json(_ENCODER.encode(value)) + b"\n\n"


def encode_named_event(name: str, value: Any) -> bytes:
    """Returns the event with this name, and with this value as JSON."""
    return b"event: " + name.encode() + b"\n" + encode_event(value)


def encode_text(text: str) -> bytes:
    """Returns the text as JSON, as it is in an event."""
    return _encode_json(encode_basestring(text))


def _encode_json(written: str) -> bytes:
    """Returns JSON as bytes. Escapes the line separators that JSON allows in a string: clients that split lines as
    Python's `str.splitlines` does would cut the event there.
    """
    if not written.isascii():
        written = written.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return written.encode("utf-8", "replace")


def decode_events(pieces: Iterable[bytes], *, limit: int = 64_000_000) -> Iterator[tuple[str, str]]:
    """Yields each event's name ("" if none) and data. As WHATWG's rules say, data lines are joined with LF, and events
    without data or without their blank line are dropped. ValueError: an event or line has more than `limit` bytes.
    """
    event, lines = _PartialEvent(limit), _LineSplitter(limit)
    for piece in pieces:
        if event.is_empty and lines.is_whole_event(piece):
            yield "", piece[len(_FIELD) : -2].decode("utf-8", "replace")
        else:
            yield from filter(None, map(event.add_line, lines.split(piece)))
    yield from filter(None, map(event.add_line, lines.last_line()))


class _PartialEvent:
    """The server-sent event whose lines are arriving now."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._name, self._data, self._size = "", list[str](), 0

    @property
    def is_empty(self) -> bool:
        return not (self._name or self._data)

    def add_line(self, line: str) -> tuple[str, str] | None:
        """Returns the event that a blank line ends, None if the event goes on or has no data."""
        if not line:
            whole = (self._name, "\n".join(self._data)) if self._data else None
            self._name, self._data, self._size = "", [], 0
            return whole
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._size += len(value)
        elif field == "event":
            self._name = value
        if self._size > self._limit:
            raise ValueError(f"an event of more than {self._limit} bytes")
        return None


class _LineSplitter:
    """Splits a stream of bytes into lines. A CR at a piece's end waits, because an LF may follow in the next piece."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        self._mark = _BYTE_ORDER_MARK

    def is_whole_event(self, piece: bytes) -> bool:
        """Returns whether the piece is one event with one line of data, as most are, and so need not be split."""
        if self._rest or not (piece.startswith(_FIELD) and piece.endswith(b"\n\n")):
            return False
        if piece.count(b"\n") != 2 or b"\r" in piece or len(piece) > self._limit:
            return False
        self._mark = b""
        return True

    def split(self, piece: bytes) -> Iterator[str]:
        """Yields the lines that end in this piece, and keeps the rest. Removes the stream's byte order mark."""
        rest, start = self._rest, 0
        rest += piece
        for match in _LINE_END.finditer(rest, self._searched):
            if match.end() == len(rest) and match[0] == b"\r":
                break
            yield rest[start : match.start()].removeprefix(self._mark).decode("utf-8", "replace")
            start, self._mark = match.end(), b""
        del rest[:start]
        self._searched = max(len(rest) - 1, 0)
        if len(rest) > self._limit:
            raise ValueError(f"a line of more than {self._limit} bytes")

    def last_line(self) -> Iterator[str]:
        """Yields the last line if the stream ended with a CR; without any line end, the line is dropped."""
        if self._rest.endswith(b"\r"):
            yield self._rest[:-1].removeprefix(self._mark).decode("utf-8", "replace")
