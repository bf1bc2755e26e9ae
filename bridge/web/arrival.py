"""Finds out from the bytes of a request whether all of it has arrived, and whether the client sends fast enough.
A malformed request counts as complete: gunicorn parses every complete request again, and rejects malformed ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from bridge.errors import BodyTooLarge, BridgeError
from bridge.web.pace import Pace
from bridge.web.room import SMALL

# The most bytes of a head. gunicorn rejects much shorter ones.
LONGEST_HEAD = 1 << 20
# The most chunks of one body. A body with more chunks is not searched further, and counts as complete.
MOST_CHUNKS = 50_000
# gunicorn reads at least this many bytes of a body before it gives the app the first byte.
READ_AHEAD = 1 << 10

_END_OF_HEAD = b"\r\n\r\n"
# The first bytes of every TLS connection; no HTTP request begins so.
_TLS_HELLO = b"\x16\x03"
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z", re.DOTALL)
# The most bytes of the line before a chunk, which has the size of the chunk.
_LONGEST_CHUNK_LINE = 10_000


class Arrival:
    """The part of an HTTP request that has arrived so far. All times are seconds of one monotonic clock.
    `is_complete` is also True for a request that will be rejected.
    `expects_continue` is True if the client sends its body only after "100 Continue".
    `refusal`: the error for an app that wants more of the body than was read.
    `largest_body` returns for a head how large the body may be. It is asked about bodies that are not SMALL.
    """

    def __init__(self, now: float, largest_body: Callable[[bytes], int]) -> None:
        self.received = bytearray()
        self.is_complete = False
        self.expects_continue = False
        self.refusal: BridgeError | None = None
        self._largest_body = largest_body
        self._max_body = SMALL
        self._pace = Pace(now)
        self._head_length = 0  # 0 while the head is incomplete
        self._body_length: int | None = None  # None: the body comes in chunks
        self._next_chunk = 0  # where the line with the size of the next chunk begins
        self._chunks = 0
        self._chunk_overhead = 0  # bytes of the lines around the chunks
        self._trailer_from = 0  # after the last chunk: where to go on searching for the end of the trailer

    def add(self, piece: bytes | memoryview, now: float) -> None:
        if not self.received:
            self._pace = Pace(now)
        searched = max(0, len(self.received) - len(_END_OF_HEAD) + 1)
        self.received += piece
        self._pace.note(len(piece), now)
        if not self._head_length:
            self._find_head(searched)
        if self._head_length and not self.is_complete:
            self.is_complete = self._has_body()

    @property
    def is_tls(self) -> bool:
        return self.received.startswith(_TLS_HELLO)

    def is_overdue(self, now: float, pause: float, silence: float) -> bool:
        """Returns whether the client sends too slowly. `silence` limits the seconds before its first byte."""
        return self._pace.is_overdue(now, pause) if self.received else now - self._pace.began > silence

    def refuse_body(self, refusal: BridgeError) -> int:
        """Forgets what has arrived, except for a complete head. Returns how many bytes that were."""
        self.refusal = refusal
        size = len(self.received)
        del self.received[self._head_length :]
        return size - len(self.received)

    def _find_head(self, searched: int) -> None:
        """Parses the head if it has arrived. A head that is too long completes the request: gunicorn rejects it."""
        end = self.received.find(_END_OF_HEAD, searched)
        if end >= 0:
            self._head_length = end + len(_END_OF_HEAD)
            self._parse_head(bytes(self.received[:end]))
        elif len(self.received) > LONGEST_HEAD:
            self.is_complete = True

    def _parse_head(self, head: bytes) -> None:
        """Reads from the head how the body arrives. A request with a too large body is complete: the app rejects it.
        A contradictory head, such as one with two lengths, counts as one without a body: gunicorn rejects the request.
        """
        fields: dict[bytes, list[bytes]] = {b"content-length": [], b"transfer-encoding": [], b"expect": []}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            fields.get(name.lower(), []).append(value.strip(b" \t").lower())
        lengths, codings = fields[b"content-length"], fields[b"transfer-encoding"]
        self._next_chunk = self._head_length
        if codings and not lengths and codings[-1].endswith(b"chunked"):
            self._body_length = None
        elif len(lengths) == 1 and not codings and lengths[0].isdigit():
            self._body_length = int(lengths[0].lstrip(b"0")[:18] or b"0")
        else:
            self._body_length = 0
        if self._body_length is None or self._body_length > SMALL:
            self._max_body = self._largest_body(head)
        self.is_complete = self._body_length is not None and not 0 < self._body_length <= self._max_body
        if self._body_length and self.is_complete:
            self.refusal = self._too_large_error()
        asks = fields[b"expect"] == [b"100-continue"] and head.partition(b"\r\n")[0].endswith(b"HTTP/1.1")
        self.expects_continue = asks and not self.is_complete

    def _has_body(self) -> bool:
        """Returns whether all of the body has arrived, or so much of a body in chunks that the app rejects it."""
        if self._body_length is not None:
            return len(self.received) >= self._head_length + self._body_length
        if self._has_last_chunk():
            return True
        if len(self.received) <= self._head_length + self._chunk_overhead + self._max_body + READ_AHEAD:
            return False
        self.refusal = self._too_large_error()
        return True

    def _too_large_error(self) -> BodyTooLarge:
        return BodyTooLarge(f"The request body is larger than {self._max_body} bytes.")

    def _has_last_chunk(self) -> bool:
        """Returns whether the last chunk and the trailer have arrived, or the chunks are of a kind that is rejected.
        Each call goes on searching where the last one stopped.
        """
        while not self._trailer_from and (end := self.received.find(b"\r\n", self._next_chunk)) >= 0:
            size = _CHUNK_SIZE.match(self.received[self._next_chunk : end])
            self._chunks += 1
            self._chunk_overhead += end - self._next_chunk + 4
            if not size or self._chunks > MOST_CHUNKS or self._chunk_overhead > LONGEST_HEAD:
                return True
            if not int(size[1], 16):
                self._trailer_from = end
            else:
                self._next_chunk = end + 2 + int(size[1], 16) + 2
        if not self._trailer_from:
            return len(self.received) > self._next_chunk + _LONGEST_CHUNK_LINE
        if self.received.find(_END_OF_HEAD, self._trailer_from) >= 0:
            return True
        self._trailer_from = max(self._trailer_from, len(self.received) - len(_END_OF_HEAD) + 1)
        return len(self.received) > self._next_chunk + LONGEST_HEAD


STEP = 65_536


class ReceivedBytes:
    """Gives gunicorn's parser the bytes of a request, in place of a socket. At the end, recv() raises the `refusal` of
    the rest, if any, and otherwise returns b"". `ended_early`: the parser wanted more bytes than have arrived.
    """

    def __init__(self, received: bytearray, refusal: BridgeError | None = None) -> None:
        self.refusal = refusal
        self._rest = memoryview(received)
        self.ended_early = False

    def recv(self, most: int) -> bytes:
        """Returns at most STEP bytes: gunicorn reads in such steps, and copies what it has beyond with each."""
        most = min(most, STEP)
        piece, self._rest = bytes(self._rest[:most]), self._rest[most:]
        if not self._rest:
            self._rest = memoryview(b"")  # frees what was received
        self.ended_early = self.ended_early or not piece
        if self.refusal and not piece:
            raise self.refusal
        return piece

    def take_after(self, ahead: bytes, size: int) -> bytes | None:
        """Returns `size` bytes that begin with `ahead`, which the parser has read, in one copy. Returns None, and takes
        nothing, if so many have not arrived.
        """
        missing = size - len(ahead)
        if not 0 <= missing <= len(self._rest):
            return None
        taken = b"".join((ahead, self._rest[:missing]))
        self._rest = self._rest[missing:]
        return taken

    def take_rest(self) -> bytes:
        """Returns the bytes that the parser has not read, and removes them from this object."""
        rest, self._rest = bytes(self._rest), memoryview(b"")
        return rest


class ArrivedBody:
    """The body of a request of known length, in place of gunicorn's `body`, which would copy it several times. What is
    read in parts is left to gunicorn.
    """

    def __init__(self, body: Any, unreader: Any) -> None:
        self._body = body
        self._unreader = unreader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def read(self, size: int | None = None) -> bytes:
        """Returns the bytes as gunicorn's does."""
        reader = self._body.reader
        if size is None or size < reader.length or self._body.buf.tell():
            return cast(bytes, self._body.read(size))
        ahead = self._unreader.take_buffered()
        whole = self._unreader.sock.take_after(ahead, reader.length)
        if whole is None:
            self._unreader.unread(ahead)
            return cast(bytes, self._body.read(size))
        reader.length = 0
        return cast(bytes, whole)
