"""The faults that the proxy can inject. A fault applies to one call, which is one request and its answer.

Before the request is passed on:
    Before(callback)      calls the callback with the ProxiedCall, for example to kill a process
    Latency(s, jitter)    holds the request for s seconds, plus or minus the jitter
    Refuse()              closes the connection without an answer
    Reset()               resets the connection (RST) without an answer
    Hang()                holds the request until the rule is released
    Status(503, body)     sends this answer; the target does not get the request

When the target has answered:
    Between(callback)     calls the callback when the head of the answer has arrived and nothing is passed on yet
    Hang(answered=True)   holds the answer until the rule is released
    DropResponse()        reads the answer to its end and drops it; the connection is closed, or reset
    Status(502, answered=True)   sends this answer, although the target did its work

While the answer is passed on, at a place given by `after_bytes` of its body or `after_events` of its event stream:
    Cut(after_events=2)   closes or resets the connection there, without the end of the framing
    Truncate(after_bytes=10)     ends the body there, so that it looks complete to HTTP
    Garbage(data)         replaces the body by these bytes; with a place, inserts them there
    Stall(s, after_events=1)     pauses for s seconds (None: until the rule is released)
An answer that ends before the place is passed on unchanged.

How the answer is sent:
    Slice(size, delay)    in pieces of so many bytes (1), each sent alone, head and framing too
    Bandwidth(rate)       at so many bytes a second
    SlowClose(s)          whole, but the connection is kept for s seconds and then closed

    After(callback)       calls the callback when the answer has been passed on

Several faults may apply to the same call. If several of them answer instead of the target, the first one injected wins.
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
    """A place in the body of an answer. Without either number it is the start."""

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
