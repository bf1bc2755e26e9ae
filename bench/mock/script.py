"""Reads from the message what the mock's model does: "!bench say 64 20" means 64 deltas, one every 20 ms."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from bench.mock.frames import FrameFormat
from bench.mock.wire import LAST_CHUNK, STREAM_HEAD, MockConnection

_SCRIPT = re.compile(rb"!bench (say|call) (\w+) ?(\d*)")
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class SayScript:
    deltas: int
    pace: float


@dataclass(frozen=True, slots=True)
class CallScript:
    tool: str


def script(body: bytes) -> SayScript | CallScript:
    """Reads the last script in the body, as the transcript before it has its own. The default is one delta."""
    start = body.rfind(b"!bench ")
    found = _SCRIPT.match(body[start : start + _LONGEST]) if start >= 0 else None
    if found is None:
        return SayScript(1, 0.0)
    if found[1] == b"call":
        return CallScript(found[2].decode())
    return SayScript(int(found[2]), int(found[3] or 0) / 1000)


def send_stream(connection: MockConnection, frame_format: FrameFormat, wanted: SayScript) -> None:
    if wanted.pace:
        _Paced(connection, frame_format, wanted).begin()
        return
    deltas = b"".join(map(frame_format.delta, range(wanted.deltas)))
    connection.write(STREAM_HEAD + deltas + frame_format.end + LAST_CHUNK)


class _Paced:
    """Sends deltas at fixed times: a late delta does not delay the next ones."""

    def __init__(self, connection: MockConnection, frame_format: FrameFormat, wanted: SayScript) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection, self._format, self._script = connection, frame_format, wanted
        self._number = 0
        self._begun = self._loop.time()

    def begin(self) -> None:
        self._connection.write(STREAM_HEAD + self._format.delta(0))
        self._next()

    def _next(self) -> None:
        self._number += 1
        if self._number < self._script.deltas:
            self._loop.call_at(self._begun + self._number * self._script.pace, self._send_delta)
        else:
            self._connection.write(self._format.end + LAST_CHUNK)

    def _send_delta(self) -> None:
        self._connection.write(self._format.delta(self._number))
        self._next()
