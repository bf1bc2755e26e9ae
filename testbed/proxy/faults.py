"""The faults that the proxy can inject. A fault strikes one call, that is one request and its answer.

Before the request is passed on:
    Before(callback)      the callback is called with the ProxiedCall, for example to kill a process
    Latency(s, jitter)    the request is held for s seconds, more or less by the jitter
    Refuse()              the connection is closed, nothing was answered
    Reset()               the connection is reset (RST), nothing was answered
    Hang()                nothing is answered until the rule is released, then the call goes on
    Status(503, body)     this answer comes from the proxy; the target hears nothing

When the target has answered:
    Between(callback)     the callback is called when the head of the answer is there and nothing is passed on yet
    Hang(answered=True)   the answer is held until the rule is released
    DropResponse()        the answer is read to its end and lost: the connection is closed, or reset
    Status(502, answered=True)   the target did its work, but the client gets this answer

While the answer is passed on, at a place given by `after_bytes` of its body or `after_events` of its event stream:
    Cut(after_events=2)   the connection is closed there, or reset, without an end that looks like one
    Truncate(after_bytes=10)     the body ends there, and looks complete to HTTP
    Garbage(data)         the body is replaced by these bytes; with a place, they are inserted there
    Stall(s, after_events=1)     nothing more for s seconds (None: until the rule is released)
An answer that ends before the place is passed on unharmed.

How the answer is sent:
    Slice(size, delay)    in pieces of so many bytes (1), each sent on its own, head and framing included
    Bandwidth(rate)       at so many bytes a second
    SlowClose(s)          whole, but the connection is kept for s seconds and then closed

    After(callback)       the callback is called when the answer has been passed on

Several faults may strike the same call. Of those that answer in the target's place the one injected first wins.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from testbed.proxy.calls import ProxiedCall

Callback = Callable[[ProxiedCall], object]


@dataclass(frozen=True, slots=True)
class Before:
    callback: Callback


@dataclass(frozen=True, slots=True)
class Between:
    callback: Callback


@dataclass(frozen=True, slots=True)
class After:
    callback: Callback


@dataclass(frozen=True, slots=True)
class Latency:
    seconds: float
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Refuse:
    pass


@dataclass(frozen=True, slots=True)
class Reset:
    pass


@dataclass(frozen=True, slots=True)
class Hang:
    answered: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    code: int
    body: bytes | str = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    answered: bool = False


@dataclass(frozen=True, slots=True)
class DropResponse:
    reset: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlace:
    """A place in the body of an answer; without either number it is the start."""

    after_bytes: int | None = None
    after_events: int | None = None

    @property
    def given(self) -> bool:
        return self.after_bytes is not None or self.after_events is not None


@dataclass(frozen=True, slots=True)
class Cut(BodyPlace):
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Truncate(BodyPlace):
    pass


@dataclass(frozen=True, slots=True)
class Garbage(BodyPlace):
    data: bytes


@dataclass(frozen=True, slots=True)
class Stall(BodyPlace):
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Slice:
    size: int = 1
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Bandwidth:
    rate: float


@dataclass(frozen=True, slots=True)
class SlowClose:
    seconds: float


Fault = (
    Before
    | Between
    | After
    | Latency
    | Refuse
    | Reset
    | Hang
    | Status
    | DropResponse
    | Cut
    | Truncate
    | Garbage
    | Stall
    | Slice
    | Bandwidth
    | SlowClose
)
