"""Server-sent events, both directions: the only place that knows what a frame looks like on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

DONE = "[DONE]"
PING = b": ping\n\n"
END = b"data: [DONE]\n\n"

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> bytes:
    return b"data: " + _ENCODER.encode(value).encode("utf-8", "replace") + b"\n\n"


def decode(pieces: Iterable[bytes], *, limit: int = 64_000_000) -> Iterator[tuple[str, str]]:
    """(event name, data) of each event, however the bytes are sliced. ValueError when one event exceeds `limit`.

    Per the WHATWG rules: lines end in LF, CR or CRLF, data lines are joined, comments and unknown fields are passed
    over, an event that a broken connection left without its blank line is dropped.
    """
    event, data, size = "", list[str](), 0
    for line in _lines(pieces, limit):
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
                size += len(value)
            elif name == "event":
                event = value
            if size > limit:
                raise ValueError(f"an event of more than {limit} bytes")
            continue
        if data:
            yield event, "\n".join(data)
        event, data, size = "", [], 0


def _lines(pieces: Iterable[bytes], limit: int) -> Iterator[str]:
    """Whole lines without their ends. A CR that ends a piece waits for the next, which may begin with its LF."""
    rest, searched, mark = bytearray(), 0, _BYTE_ORDER_MARK
    for piece in pieces:
        if not rest and piece.endswith(b"\n") and b"\r" not in piece:  # the usual case, which costs least
            for line in piece.removeprefix(mark)[:-1].split(b"\n"):
                yield line.decode("utf-8", "replace")
            mark = b""
            continue
        rest += piece
        start = 0
        for match in _LINE_END.finditer(rest, searched):
            if match.end() == len(rest) and match[0] == b"\r":
                break
            yield rest[start : match.start()].removeprefix(mark).decode("utf-8", "replace")
            start, mark = match.end(), b""
        del rest[:start]
        searched = max(len(rest) - 1, 0)
        if len(rest) > limit:
            raise ValueError(f"a line of more than {limit} bytes")
    if rest.endswith(b"\r"):
        yield rest[:-1].removeprefix(mark).decode("utf-8", "replace")
