"""Reads HTTP/1.1 from a socket: heads, and bodies in the pieces in which they arrive."""

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

LARGEST_HEAD = 1_000_000
PIECE = 65_536

Framing = Literal["none", "length", "chunked", "close"]


class BrokenMessage(Exception):
    """The other side closed in the middle of a message, or did not send HTTP."""


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and the headers of a message, and the bytes that they were read from."""

    raw: bytes
    first: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]

    def header(self, name: str) -> str:
        """Returns a header's value in lower case, or "" if it is missing."""
        return next((value for key, value in self.headers if key.lower() == name), "").lower()

    @property
    def closes(self) -> bool:
        """Whether the connection ends after this message."""
        version = self.first[0] if self.first[0].startswith("HTTP/") else self.first[2]
        if version == "HTTP/1.0":
            return self.header("connection") != "keep-alive"
        return self.header("connection") == "close"

    def reframed(self) -> bytes:
        """Returns the same head for a body that is sent in chunks."""
        kept = [(key, value) for key, value in self.headers if key.lower() not in _FRAMING_HEADERS]
        lines = [" ".join(self.first), *(f"{key}: {value}" for key, value in kept)]
        return "\r\n".join([*lines, "Transfer-Encoding: chunked", "", ""]).encode("latin-1")


_FRAMING_HEADERS = ("content-length", "transfer-encoding")


def parse_head(raw: bytes) -> Head:
    """Parses a head; BrokenMessage if it is malformed."""
    first, *lines = raw.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2:
        raise BrokenMessage(f"not HTTP: {first[:80]!r}")
    headers = tuple((key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines))
    return Head(raw, (words[0], words[1], words[2] if len(words) > 2 else ""), headers)


def request_framing(head: Head) -> Framing:
    """Returns how the body of a request is framed."""
    if "chunked" in head.header("transfer-encoding"):
        return "chunked"
    return "length" if head.header("content-length") else "none"


def response_framing(head: Head, method: str) -> Framing:
    """Returns how the body of an answer is framed."""
    if method == "HEAD" or head.first[1] in ("204", "304"):
        return "none"
    framing = request_framing(head)
    return "close" if framing == "none" else framing


class MessageReader:
    """Reads messages from a socket. It calls `wait` before it waits for bytes; `wait` may raise to stop it."""

    def __init__(self, source: socket.socket, wait: Callable[[], None]) -> None:
        self._source = source
        self._wait = wait
        self._buffer = b""

    def _more(self) -> bytes:
        self._wait()
        return self._source.recv(PIECE)

    def head(self) -> Head | None:
        """Reads the next head, or None if the other side closed before its first byte."""
        while b"\r\n\r\n" not in self._buffer:
            piece = self._more()
            if not piece and not self._buffer.strip(b"\r\n"):
                return None
            if not piece or len(self._buffer) > LARGEST_HEAD:
                raise BrokenMessage("a message ended within its head")
            self._buffer += piece
        raw, _, self._buffer = self._buffer.lstrip(b"\r\n").partition(b"\r\n\r\n")
        return parse_head(raw + b"\r\n\r\n")

    def body(self, head: Head, framing: Framing) -> Iterator[bytes]:
        """Yields the body without its framing, in the pieces in which it arrives."""
        if framing == "length":
            yield from self._exactly(_number(head.header("content-length"), 10))
        elif framing == "chunked":
            yield from self._chunked()
        elif framing == "close":
            while piece := self._buffer or self._more():
                self._buffer = b""
                yield piece

    def _exactly(self, left: int) -> Iterator[bytes]:
        while left:
            piece = self._buffer or self._more()
            if not piece:
                raise BrokenMessage("a message ended within its body")
            piece, self._buffer = piece[:left], piece[left:]
            left -= len(piece)
            yield piece

    def _line(self) -> bytes:
        while b"\n" not in self._buffer:
            piece = self._more()
            if not piece:
                raise BrokenMessage("a message ended between two chunks")
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.strip()

    def _chunked(self) -> Iterator[bytes]:
        while size := _number(self._line().partition(b";")[0].decode("latin-1"), 16):
            yield from self._exactly(size)
            self._line()
        while self._line():
            """Skips the trailers."""


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise BrokenMessage(f"not a length: {text[:40]!r}") from None


def chunk(piece: bytes) -> bytes:
    """Returns the piece as one chunk."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


LAST_CHUNK = b"0\r\n\r\n"
