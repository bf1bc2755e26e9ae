"""Passes one call through the proxy and applies the faults of its rules."""

import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Protocol

from testbed.proxy.bodies import BodyEnds, altered
from testbed.proxy.calls import ConnectionEnds, ProxiedCall
from testbed.proxy.faults import (
    After,
    Bandwidth,
    Before,
    Between,
    Callback,
    DropResponse,
    Fault,
    Garbage,
    Hang,
    Latency,
    Refuse,
    Reset,
    Slice,
    SlowClose,
    Status,
    Truncate,
)
from testbed.proxy.framing import LAST_CHUNK, BrokenMessage, Framing, Head, MessageReader, chunk, response_framing
from testbed.proxy.rules import Rule

BANDWIDTH_STEPS = 50


class ClientConnection(Protocol):
    """The parts of a connection that a call uses."""

    @property
    def answers(self) -> MessageReader:
        """Reads what the target sends."""

    def ask(self, head: Head, framed: bytes) -> Head:
        """Passes a request on and returns the head of its answer."""

    def send(self, data: bytes) -> None:
        """Sends to the client."""

    def pause(self, seconds: float | None, released: threading.Event) -> None:
        """Waits that long (None: until released), unless the client leaves or the proxy closes."""

    def check_open(self) -> None:
        """Ends the call if the proxy closes or the client has left."""

    def target_left(self) -> None:
        """Ends the call because the target broke off."""

    def spread(self, jitter: float) -> float:
        """Returns a random number between minus and plus the jitter."""


class FaultyCall:
    """One call, and the rules whose faults apply to it."""

    def __init__(self, connection: ClientConnection, call: ProxiedCall, rules: list[Rule]) -> None:
        self._connection = connection
        self._call = call
        self._rules = rules
        self._throttles = [rule.fault for rule in rules if isinstance(rule.fault, Slice | Bandwidth)]

    def run(self, head: Head, framed: bytes) -> bool:
        """Passes the call on; False if the connection ends with it."""
        for rule in self._rules:
            if self._before(rule, rule.fault):
                return True
        answer = self._connection.ask(head, framed)
        self._call.status = int(answer.first[1])
        pieces = self._pieces(self._connection.answers.body(answer, response_framing(answer, head.first[0])))
        for rule in self._rules:
            if self._between(rule, rule.fault, pieces):
                return not answer.closes
        keep = self._relay(answer, pieces, response_framing(answer, head.first[0]))
        for rule in self._rules:
            keep = self._after(rule, rule.fault) and keep
        return keep

    def _pieces(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the body of the answer. If the target breaks off, the call ends."""
        try:
            yield from pieces
        except BrokenMessage:
            raise ConnectionEnds("target left") from None
        except OSError:
            self._connection.target_left()

    def _before(self, rule: Rule, fault: Fault) -> bool:
        """Applies a fault before the request is passed on; True if it has been answered."""
        if isinstance(fault, Before):
            self._call_back(fault.callback)
            # The request of a client that was killed just now must not reach the target.
            self._connection.check_open()
        elif isinstance(fault, Latency):
            wait = max(0.0, fault.seconds + self._connection.spread(fault.jitter))
            self._connection.pause(wait, rule.released)
        elif isinstance(fault, Hang) and not fault.answered:
            self._connection.pause(None, rule.released)
        elif isinstance(fault, Refuse):
            raise ConnectionEnds("refused")
        elif isinstance(fault, Reset):
            raise ConnectionEnds("reset", reset=True)
        elif isinstance(fault, Status) and not fault.answered:
            self._answer(fault)
            return True
        return False

    def _between(self, rule: Rule, fault: Fault, pieces: Iterator[bytes]) -> bool:
        """Applies a fault when the target has begun to answer; True if the client got another answer."""
        if isinstance(fault, Between):
            self._call_back(fault.callback)
        elif isinstance(fault, Hang) and fault.answered:
            self._connection.pause(None, rule.released)
        elif isinstance(fault, DropResponse):
            _drain(pieces)
            raise ConnectionEnds("dropped", fault.reset)
        elif isinstance(fault, Status) and fault.answered:
            _drain(pieces)
            self._answer(fault)
            return True
        return False

    def _after(self, rule: Rule, fault: Fault) -> bool:
        if isinstance(fault, After):
            self._call_back(fault.callback)
        if isinstance(fault, SlowClose):
            with suppress(ConnectionEnds):
                self._connection.pause(fault.seconds, rule.released)
            return False
        return True

    def _call_back(self, callback: Callback) -> None:
        try:
            callback(self._call)
        except Exception as error:
            # An OSError of the callback would look like one of the connection.
            raise RuntimeError(f"the callback of a fault failed on {self._call}") from error

    def _answer(self, fault: Status) -> None:
        body = fault.body.encode() if isinstance(fault.body, str) else fault.body
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **fault.headers}
        lines = [f"HTTP/1.1 {fault.code} Fault", *(f"{key}: {value}" for key, value in headers.items())]
        self._call.status = fault.code
        self._send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        self._call.received += len(body)

    def _relay(self, answer: Head, pieces: Iterator[bytes], framing: Framing) -> bool:
        """Passes the answer on; False if the connection ends with it."""
        reframed = framing == "length" and any(isinstance(rule.fault, Truncate | Garbage) for rule in self._rules)
        chunked = reframed or framing == "chunked"
        for rule in self._rules:
            pieces = altered(pieces, rule.fault, partial(self._hold, rule))
        self._send(answer.reframed() if reframed else answer.raw)
        whole = True
        try:
            for piece in pieces:
                if piece:
                    self._send(chunk(piece) if chunked else piece)
                    self._call.received += len(piece)
        except BodyEnds:
            whole = False
        if chunked:
            self._send(LAST_CHUNK)
        # The rest of a truncated body would look like the head of the next answer.
        return whole and framing != "close" and not answer.closes

    def _hold(self, rule: Rule, seconds: float | None) -> None:
        self._connection.pause(seconds, rule.released)

    def _send(self, data: bytes) -> None:
        for part, wait in throttled(data, self._throttles):
            self._connection.send(part)
            if wait:
                self._connection.pause(wait, threading.Event())


def throttled(data: bytes, throttles: list[Slice | Bandwidth]) -> Iterator[tuple[bytes, float]]:
    """Yields the bytes in the parts in which they are sent, each with the pause after it."""
    size, rate, delay = len(data), 0.0, 0.0
    for one in throttles:
        if isinstance(one, Slice):
            size, delay = min(size, one.size), delay + one.delay
        else:
            size, rate = min(size, max(1, int(one.rate / BANDWIDTH_STEPS))), one.rate
    for start in range(0, len(data), size or 1):
        part = data[start : start + size]
        yield part, delay + (len(part) / rate if rate else 0.0)


def _drain(pieces: Iterator[bytes]) -> None:
    for _ in pieces:
        """Drops it."""
