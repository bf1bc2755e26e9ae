"""A trace for every request, from its first byte to its last, and what of it the caller is told in headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Event as Signal

from flask import Flask, Response, request

from bridge.trace import Trace, current, enter
from bridge.turn import Event


def follow_requests(app: Flask) -> None:
    """The caller may name the request itself, by X-Request-Id and traceparent; Letta is told both."""

    @app.before_request
    def begin() -> None:
        enter(Trace(request.headers.get("X-Request-Id", ""), request.headers.get("traceparent", "")))

    @app.after_request
    def tell(response: Response) -> Response:
        trace = current()
        response.headers["X-Request-Id"] = trace.request_id
        if request.path.startswith("/v1"):
            response.headers["X-Bridge-Letta-Calls"] = str(trace.letta_calls)
            response.headers["Server-Timing"] = _timing(trace)
        response.call_on_close(partial(enter, None))
        return response


def followed(events: Callable[[Signal], Iterable[Event]]) -> Callable[[Signal], Iterator[Event]]:
    """The same events for a thread of their own, which then works for the request of this one."""
    trace = current()

    def begin(gone: Signal) -> Iterator[Event]:
        enter(trace)
        yield from events(gone)

    return begin


def _timing(trace: Trace) -> str:
    """In milliseconds. Of a stream it tells what was known when the headers went."""
    total, letta, waited = trace.seconds, trace.letta_seconds, trace.waited_seconds
    parts = {"bridge": max(0.0, total - letta - waited), "letta": letta, "wait": waited, "total": total}
    return ", ".join(f"{name};dur={seconds * 1000:.1f}" for name, seconds in parts.items())
