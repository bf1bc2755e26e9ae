"""A request on its way in, from its bytes alone: whether all of it is there, and whether it comes fast enough.

What is odd counts as whole: gunicorn, which reads it anew, refuses it by its head, or finds that it ends too early.
"""

from __future__ import annotations

import re

# gunicorn refuses a head well before.
LONGEST_HEAD = 1 << 20
# Bytes a second that a client must reach in the long run; a modem does.
SLOWEST = 4_000
# Of one body. What has more is looked through no further.
MOST_CHUNKS = 50_000
# gunicorn wants to have so much before it gives the app one byte.
AHEAD = 1 << 10

_END_OF_HEAD = b"\r\n\r\n"
_CHUNK_SIZE = re.compile(rb"0*([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z", re.DOTALL)
_LONGEST_CHUNK_LINE = 10_000


class Arrival:
    """What has come of one request, from the moment `now` on. Times are of one monotonic clock, in seconds."""

    def __init__(self, now: float, largest: int) -> None:
        self.received = bytearray()
        self.whole = False
        self.wants_go_ahead = False
        self._largest = largest
        self._began = now
        self._last = now
        self._head = 0  # its length, once it is known
        self._length: int | None = None  # of the body; None: it comes in chunks
        self._chunk = 0  # where the next line with a chunk's size begins
        self._chunks = 0
        self._around = 0  # bytes that are around the chunks
        self._trailer = 0  # as far as the end of what follows the last chunk was looked for

    def take(self, piece: bytes, now: float) -> None:
        if not self.received:
            self._began = now
        searched = max(0, len(self.received) - len(_END_OF_HEAD) + 1)
        self.received += piece
        self._last = now
        if not self._head:
            self._find_head(searched)
        if self._head and not self.whole:
            self.whole = self._has_body()

    def is_overdue(self, now: float, pause: float, silence: float) -> bool:
        """Whether the client paused for too long, or drips; before its first byte it may say nothing for `silence`."""
        if not self.received:
            return now - self._began > silence
        return now - self._last > pause or now - self._began > pause + len(self.received) / SLOWEST

    def _find_head(self, searched: int) -> None:
        end = self.received.find(_END_OF_HEAD, searched)
        if end >= 0:
            self._head = end + len(_END_OF_HEAD)
            self._read_head(bytes(self.received[:end]))
        elif len(self.received) > LONGEST_HEAD:
            self.whole = True

    def _read_head(self, head: bytes) -> None:
        fields: dict[bytes, list[bytes]] = {b"content-length": [], b"transfer-encoding": [], b"expect": []}
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            fields.get(name.lower(), []).append(value.strip(b" \t").lower())
        lengths, codings = fields[b"content-length"], fields[b"transfer-encoding"]
        self._chunk = self._head
        if codings and not lengths and codings[-1].endswith(b"chunked"):
            self._length = None
        elif len(lengths) == 1 and not codings and lengths[0].isdigit():
            self._length = int(lengths[0].lstrip(b"0")[:18] or b"0")
        else:
            self._length = 0
        self.whole = self._length is not None and not 0 < self._length <= self._largest
        asks = fields[b"expect"] == [b"100-continue"] and head.partition(b"\r\n")[0].endswith(b"HTTP/1.1")
        self.wants_go_ahead = asks and not self.whole

    def _has_body(self) -> bool:
        if self._length is not None:
            return len(self.received) >= self._head + self._length
        return self._has_last_chunk() or len(self.received) > self._head + self._around + self._largest + AHEAD

    def _has_last_chunk(self) -> bool:
        while not self._trailer and (end := self.received.find(b"\r\n", self._chunk)) >= 0:
            size = _CHUNK_SIZE.match(self.received[self._chunk : end])
            self._chunks += 1
            self._around += end - self._chunk + 4
            if not size or self._chunks > MOST_CHUNKS or self._around > LONGEST_HEAD:
                return True
            if not int(size[1], 16):
                self._trailer = end
            else:
                self._chunk = end + 2 + int(size[1], 16) + 2
        if not self._trailer:
            return len(self.received) > self._chunk + _LONGEST_CHUNK_LINE
        if self.received.find(_END_OF_HEAD, self._trailer) >= 0:
            return True
        self._trailer = max(self._trailer, len(self.received) - len(_END_OF_HEAD) + 1)
        return len(self.received) > self._chunk + LONGEST_HEAD


class Gathered:
    """What has arrived, in the place of the socket that gunicorn's parser reads from: it waits for nothing."""

    def __init__(self, received: bytearray) -> None:
        self._rest = memoryview(received)
        self.ran_out = False

    def recv(self, most: int) -> bytes:
        piece, self._rest = bytes(self._rest[:most]), self._rest[most:]
        if not self._rest:
            self._rest = memoryview(b"")  # lets go of what was received
        self.ran_out = self.ran_out or not piece
        return piece

    def rest(self) -> bytes:
        """What was not read; nothing of it is kept here."""
        rest, self._rest = bytes(self._rest), memoryview(b"")
        return rest
