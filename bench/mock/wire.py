"""The part of HTTP/1.1 that the benchmark needs: it reads requests and writes bytes that are built in advance."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast
from urllib.parse import parse_qs

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ndate: Mon, 01 Jan 2029 00:00:00 GMT\r\nserver: uvicorn\r\n"
    b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: str
    body: bytes

    def query_values(self, name: str) -> list[str]:
        return parse_qs(self.query).get(name, [])


class MockConnection(asyncio.Protocol):
    """One connection of a client. `serve` answers through `write`, now or later."""

    def __init__(self, serve: Callable[[Request, MockConnection], None]) -> None:
        self._serve = serve
        self._unread = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        head_end = self._unread.find(b"\r\n\r\n")
        if head_end < 0:
            return
        length = _LENGTH.search(self._unread, 0, head_end + 2)
        end = head_end + 4 + (int(length[1]) if length else 0)
        if len(self._unread) < end:
            return
        method, target, _ = self._unread[: self._unread.index(b"\r\n")].decode().split(" ")
        path, _, query = target.partition("?")
        request = Request(method, path, query, bytes(self._unread[head_end + 4 : end]))
        del self._unread[:end]
        self._serve(request, self)


def answer(body: bytes, status: str = "200 OK") -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nserver: uvicorn\r\ncontent-length: {len(body)}\r\ncontent-type: application/json\r\n\r\n"
    )
    return head.encode() + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
