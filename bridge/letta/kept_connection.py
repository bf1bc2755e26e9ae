"""One connection to a server, and an answer that arrives on it.

Without TLS, the socket blocks, and the system ends a wait that takes too long. With Python's own time limits, each read
and write would be two system calls, and other threads could take the interpreter in between. Over TLS, Python's limits
are needed: its `ssl` module would wait again each time that the system ends a wait.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import BadStatusLine, RemoteDisconnected
from typing import Any, Protocol, cast

import httptools
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, ProtocolError, ReadTimeoutError

# So much is received at once of what comes as a whole, and of a stream. A waiting thread holds a buffer of this size.
WHOLE_BYTES = 65_536
STREAM_BYTES = 8_192
# A body of at most this size is sent together with its head.
SENT_AT_ONCE = 1 << 20
LONGEST_HEAD = 1 << 20
# The time limit, in seconds, for reading what has arrived already. Over TLS it may be half a record.
AT_ONCE = 0.001
# So many seconds the end of an answer may take after it was left. Letta 0.16 takes a tenth of a second.
LONGEST_END = 5.0
# A connection that had no call for so many seconds is not used again: uvicorn, Letta's server, closes it after 5, and a
# call that is sent at that moment is lost.
LONGEST_IDLE = 3.0
# So many reads of such an end are made at once: a server that sends on and on must keep no other call waiting.
MOST_READS_OF_END = 4
# The system's form of a time limit: seconds and microseconds.
_TIME_LIMIT = struct.Struct("ll")
# What the system says at the time limit, without and with TLS.
_AT_TIME_LIMIT = (BlockingIOError, TimeoutError)
_BROKEN = "The connection broke in the middle of the answer."


class Pool(Protocol):
    """Keeps connections for the next calls."""

    def keep(self, connection: KeptConnection) -> None:
        """Keeps a connection without a call."""

    def keep_ending(self, answer: ArrivingAnswer) -> None:
        """Keeps the connection of an answer whose end may come later."""


class KeptConnection:
    """An open connection. `pool` gets it when an answer was received to its end and the server leaves it open."""

    def __init__(self, opened: HTTPConnection, pool: Pool) -> None:
        self.pool = pool
        self._opened = opened
        self._socket = cast(socket.socket, opened.sock)
        self._has_tls = isinstance(self._socket, ssl.SSLSocket)
        if not self._has_tls:
            self._socket.settimeout(None)
        self._seconds = 0.0
        self._answered_at = time.monotonic()

    def note_end_of_answer(self) -> None:
        """Notes that the connection has no call from now on."""
        self._answered_at = time.monotonic()

    @property
    def is_usable(self) -> bool:
        """Whether the server has neither closed the connection since the last answer nor sent anything, and will not
        close it in this moment.
        """
        if time.monotonic() - self._answered_at > LONGEST_IDLE:
            return False
        return self._opened.is_connected and not (self._has_tls and cast(ssl.SSLSocket, self._socket).pending())

    def close(self) -> None:
        self._opened.close()

    def set_time_limit(self, seconds: float) -> None:
        """Makes each wait for the server end after so many seconds."""
        if seconds == self._seconds:
            return
        self._seconds = seconds
        if self._has_tls:
            self._socket.settimeout(seconds)
        else:
            whole = int(seconds)
            limit = _TIME_LIMIT.pack(whole, max(1, int((seconds - whole) * 1e6)))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> None:
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header of a call has a line end")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        try:
            if body is None or len(body) <= SENT_AT_ONCE:
                self._socket.sendall(head + (body or b""))
            else:
                self._socket.sendall(head)
                self._socket.sendall(body)
        except BrokenPipeError:
            return  # the server may have answered before it closed the connection
        except OSError as fault:
            raise _library_fault(fault, path) from fault

    def receive(self, most: int, path: str) -> bytes:
        """Returns bytes that have arrived, for which it waits; b"" if the server has closed the connection."""
        try:
            return self._socket.recv(most)
        except OSError as fault:
            raise _library_fault(fault, path) from fault


class ArrivingAnswer:
    """The answer to one call, as a file-like object. The parser calls the methods that begin with `on_`."""

    def __init__(self, connection: KeptConnection, path: str) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self._connection: KeptConnection | None = connection  # None when it was given back or closed
        self._path = path
        self._parser: Any = httptools.HttpResponseParser(self)  # None at the end: each of the two refers to the other
        self._pieces: list[bytes] = []
        self._first_bytes = b""
        self._received = 0
        self._left_at = 0.0
        self._has_head = self._is_complete = self._leaves_open = False

    def on_message_begin(self) -> None:
        if self._is_complete:  # something follows the answer: the next call's would be another
            self._leaves_open = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:
            self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if not self._has_head:
            self.status = self._parser.get_status_code()
            self._has_head = self.status >= 200
            self._leaves_open = self._parser.should_keep_alive()

    def on_body(self, piece: bytes) -> None:
        if not self._is_complete:
            self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """Ends the answer. After a status below 200, which says only that the answer comes, the answer follows."""
        self._is_complete = self._has_head
        if not self._has_head:
            self.headers = []

    # --- what arrives ---------------------------------------------------------------------------------

    def receive_head(self) -> None:
        """Waits until `status` and `headers` are known."""
        while not self._has_head:
            self._receive()
            if self._received > LONGEST_HEAD and not self._has_head:
                self.abandon()
                raise ProtocolError("The head of the answer is too long.")

    def has_header(self, name: str) -> bool:
        return any(known.lower() == name for known, _ in self.headers)

    def read1(self, amount: int = -1, decode_content: bool = False) -> bytes:
        """Returns bytes of the body that have arrived, for which it waits; b"" at the end. They are never decoded."""
        while not self._pieces and not self._is_complete:
            self._receive(STREAM_BYTES)
        arrived, self._pieces = b"".join(self._pieces), []
        if 0 <= amount < len(arrived):
            self._pieces = [arrived[amount:]]
            return arrived[:amount]
        return arrived

    def read(self, amount: int | None = None, decode_content: bool = False) -> bytes:
        """Returns the rest of the body, or only the next `amount` bytes."""
        while not self._is_complete and (amount is None or sum(map(len, self._pieces)) < amount):
            self._receive()
        return self.read1(-1 if amount is None else amount)

    def stream(self, amount: int, decode_content: bool = False) -> Iterator[bytes]:
        """Yields the whole body at once: `requests` calls this for a body that is wanted whole."""
        if body := self.read():
            yield body

    @property
    def closed(self) -> bool:
        """Whether nothing is left to read."""
        return self._connection is None and not self._pieces

    def leave_end(self) -> None:
        """Says that nobody reads further, though the end of the answer may not have come: `receive_end` receives it."""
        if self._connection is not None:
            self._left_at = time.monotonic()
            self._connection.pool.keep_ending(self)

    def receive_end(self) -> bool:
        """Receives what has come of an answer that was left. Returns False if its end has not come yet."""
        with suppress(HTTPError):
            for _ in range(MOST_READS_OF_END):
                if self._connection is None or self._connection.is_usable:
                    break
                self._connection.set_time_limit(AT_ONCE)
                self._receive()
                self._pieces.clear()  # nobody reads further
            if self._connection is not None and time.monotonic() - self._left_at < LONGEST_END:
                return False
        self.abandon()
        return True

    def close(self) -> None:
        """Closes the connection, unless the answer was received to its end, or left."""
        if not self._left_at:
            self.abandon()

    def abandon(self) -> None:
        connection, self._connection, self._parser = self._connection, None, None
        if connection is not None:
            connection.close()

    def _receive(self, most: int = WHOLE_BYTES) -> None:
        """Receives once. At the end of the answer, gives the connection back or closes it; at a fault, closes it."""
        connection = self._connection
        if connection is None:
            raise ProtocolError(_BROKEN)
        try:
            self._take_in(connection.receive(most, self._path))
        except BaseException:
            self.abandon()
            raise
        if self._is_complete:
            self._connection = self._parser = None
            if self._leaves_open:
                connection.pool.keep(connection)
            else:
                connection.close()

    def _take_in(self, data: bytes) -> None:
        """Parses bytes that have arrived; b"" is the end of the connection."""
        self._received += len(data)
        self._first_bytes = self._first_bytes or data[:100]
        if not data:
            return self._end_with_connection()
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as fault:
            if not self._is_complete:
                raise ProtocolError("Connection aborted.", fault) from self._cause_of_malformed(fault)
            self._leaves_open = False  # something followed the answer
        return None

    def _end_with_connection(self) -> None:
        """Ends an answer of which only the end of the connection shows where it ends."""
        if not self._first_bytes:
            gone = RemoteDisconnected("The server closed the connection without an answer.")
            raise ProtocolError("Connection aborted.", gone) from gone
        if not self._has_head or self.has_header("content-length") or self.has_header("transfer-encoding"):
            raise ProtocolError(_BROKEN)
        self._is_complete, self._leaves_open = True, False

    def _cause_of_malformed(self, fault: Exception) -> Exception:
        """Returns what http.client would raise for an answer that is no HTTP: it names what came instead."""
        return fault if self._has_head else BadStatusLine(self._first_bytes.decode("latin-1"))


def _library_fault(fault: OSError, path: str) -> HTTPError:
    """Returns the exception that urllib3 raises for a fault of the system."""
    if isinstance(fault, _AT_TIME_LIMIT):
        return ReadTimeoutError(cast(Any, None), path, "Read timed out.")
    return ProtocolError("Connection aborted.", fault)
