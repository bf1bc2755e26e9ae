"""What the mock's model does is written in the message: "!bench say 64 20" is 64 deltas, one every 20 ms."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

from bench.mock.frames import Form
from bench.mock.wire import LAST_CHUNK, STREAM_HEAD, Exchange

_SCRIPT = re.compile(rb"!bench (say|call) (\w+) ?(\d*)")
_LONGEST = 60
AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Say:
    deltas: int
    pace: float


@dataclass(frozen=True, slots=True)
class Call:
    tool: str


def script(body: bytes) -> Say | Call:
    """The last one in the body: the transcript before it has its own. Without one, a single word is said."""
    start = body.rfind(b"!bench ")
    found = _SCRIPT.match(body[start : start + _LONGEST]) if start >= 0 else None
    if found is None:
        return Say(1, 0.0)
    if found[1] == b"call":
        return Call(found[2].decode())
    return Say(int(found[2]), int(found[3] or 0) / 1000)


def speak(to: Exchange, form: Form, said: Say) -> None:
    if said.pace:
        _Paced(to, form, said).begin()
        return
    deltas = b"".join(map(form.delta, range(said.deltas)))
    to.write(STREAM_HEAD + deltas + form.end + LAST_CHUNK)


class _Paced:
    """By a fixed beat: a late delta does not make the next ones late."""

    def __init__(self, to: Exchange, form: Form, said: Say) -> None:
        self._loop = asyncio.get_running_loop()
        self._to, self._form, self._said = to, form, said
        self._number = 0
        self._begun = self._loop.time()

    def begin(self) -> None:
        self._to.write(STREAM_HEAD + self._form.delta(0))
        self._next()

    def _next(self) -> None:
        self._number += 1
        if self._number < self._said.deltas:
            self._loop.call_at(self._begun + self._number * self._said.pace, self._beat)
        else:
            self._to.write(self._form.end + LAST_CHUNK)

    def _beat(self) -> None:
        self._to.write(self._form.delta(self._number))
        self._next()
