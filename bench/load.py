"""Runs many clients in one thread. Each sends its next request when it has its answer."""

from __future__ import annotations

import asyncio
import gc
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import uvloop

from bench.client_requests import NumberedRequests
from bench.errors import BenchFailed

_DELTA = re.compile(rb"(\d+) (\d+\.\d{6});")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.I)
_CLOSES = re.compile(rb"\r\nconnection: *close", re.I)
_LONGEST_DELTA = 40
PATIENCE = 30.0


@dataclass(slots=True)
class LoadResult:
    """Times in seconds of the requests after the warm-up. `all_requests` and `all_frames` also count the warm-up.

    `delays` are those of deltas. `gaps` say by how much the time between two deltas grew or shrank on the way.
    """

    times: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    lost: int = 0
    seconds: float = 0.0
    all_requests: int = 0
    all_frames: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """`requests` are sent in parallel, each again and again. They start one after the other within `spread` seconds.

    The first goes to `port`, the next ones to `more_ports`, and so on in turns.
    """

    port: int
    requests: Sequence[bytes]
    seconds: float
    deltas: int = 0
    spread: float = 0.0
    warm_up: float = 0.0
    more_ports: Sequence[int] = ()


class _Client(asyncio.Protocol):
    def __init__(self, load: Load, number: int, result: LoadResult, begin: float, end: float) -> None:
        ports, request = (load.port, *load.more_ports), load.requests[number]
        self._port, self._deltas = ports[number % len(ports)], load.deltas
        self._requests, self._result = NumberedRequests(request), result
        self._begin, self._end = begin, end
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._sent_at = 0.0
        self._closing = 0
        self._again: asyncio.Task[None] | None = None
        self._reset()

    def _reset(self) -> None:
        self._head = b""
        self._length: int | None = None
        self._received = 0
        self._tail = b""
        self._next = 0
        self._lost = 0
        self._first = 0.0
        self._last = self._last_sent = 0.0
        self._closes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._requests.next())

    def connection_lost(self, exc: Exception | None) -> None:
        if self._closing:
            self._closing -= 1
        elif not self.done.done():
            self.done.set_exception(BenchFailed(f"a connection broke in the middle of an answer ({exc})"))

    async def connect(self) -> None:
        """Connects and sends the first request."""
        self._sent_at = time.monotonic()
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._port)

    def _send_again(self) -> None:
        """Reuses the connection if possible. The time to make a new one counts."""
        assert self._transport is not None
        closes = self._closes
        self._reset()
        if closes:
            self._close()
            self._again = asyncio.get_running_loop().create_task(self.connect())
        else:
            self._sent_at = time.monotonic()
            self._transport.write(self._requests.next())

    def _close(self) -> None:
        assert self._transport is not None
        self._closing += 1
        self._transport.close()

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        if self._length is None:
            data = self._after_head(data)
            if self._length is None:
                return
        self._received += len(data)
        text = self._tail + data
        used = self._read(text, now) if self._deltas else 0
        self._tail = text[max(used, len(text) - _LONGEST_DELTA) :]
        if self._received >= self._length if self._length >= 0 else self._tail.endswith(b"0\r\n\r\n"):
            self._answered(now)

    def _after_head(self, data: bytes) -> bytes:
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return b""
        head, rest = self._head[: end + 2], self._head[end + 4 :]
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(BenchFailed(f"not a successful answer: {self._head[:600]!r}"))
            return b""
        found = _LENGTH.search(head)
        self._length = int(found[1]) if found else -1
        self._closes = _CLOSES.search(head) is not None
        return rest

    def _read(self, text: bytes, now: float) -> int:
        used = 0
        for found in _DELTA.finditer(text):
            used = found.end()
            number, sent = int(found[1]), float(found[2])
            self._lost += number != self._next
            self._next = number + 1
            self._first = self._first or now
            if self._sent_at >= self._begin:
                self._result.delays.append(now - sent)
                if number:
                    self._result.gaps.append((now - self._last) - (sent - self._last_sent))
            self._last, self._last_sent = now, sent
        return used

    def _answered(self, now: float) -> None:
        result = self._result
        result.all_requests += 1
        result.all_frames += self._next
        if self._begin <= self._sent_at:
            result.times.append(now - self._sent_at)
            result.lost += self._lost + abs(self._deltas - self._next)
            if self._first:
                result.firsts.append(self._first - self._sent_at)
        if now < self._end:
            self._send_again()
            return
        self.done.set_result(None)
        self._close()


def run(load: Load) -> LoadResult:
    """Measures for `seconds` after `warm_up`. Requests that have started are answered to the end."""
    gc.collect()
    gc.disable()
    try:
        return uvloop.run(_run(load))
    finally:
        gc.enable()


async def _run(load: Load) -> LoadResult:
    result = LoadResult()
    begin = time.monotonic() + load.warm_up
    end = begin + load.seconds
    clients = []
    for number in range(len(load.requests)):
        client = _Client(load, number, result, begin, end)
        await client.connect()
        clients.append(client)
        if load.spread:
            await asyncio.sleep(load.spread / len(load.requests))
    done = asyncio.gather(*(client.done for client in clients))
    await asyncio.wait_for(done, load.warm_up + load.seconds + PATIENCE)
    result.seconds = time.monotonic() - begin
    return result
