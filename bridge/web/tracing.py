"""A trace for every request, from its first byte to its last: told to the caller in headers, to the log in a line."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from flask import Flask, Response, request

from bridge.trace import Trace, current, set_current
from bridge.web.metrics import Metrics

log = logging.getLogger("bridge.request")

LONGEST_PATH = 200
# What platforms and monitors ask every few seconds.
_ASKED_OFTEN = frozenset({"/healthz", "/readyz", "/metrics"})


def follow_requests(app: Flask, metrics: Metrics) -> None:
    """The caller may name the request itself, by X-Request-Id and traceparent; Letta is told both."""

    @app.before_request
    def begin() -> None:
        set_current(Trace(request.headers.get("X-Request-Id", ""), request.headers.get("traceparent", "")))

    @app.after_request
    def tell(response: Response) -> Response:
        trace = current()
        response.headers["X-Request-Id"] = trace.request_id
        if request.path.startswith("/v1"):
            response.headers["X-Bridge-Letta-Calls"] = str(trace.letta_calls)
            response.headers["Server-Timing"] = _timing(trace)
        streamed = response.mimetype == "text/event-stream"
        if streamed:
            metrics.stream_begins()
        route = request.url_rule.rule if request.url_rule else ""
        told = partial(metrics.request_ended, route, request.method, response.status_code, trace, streamed=streamed)
        line = _line(response)

        def leave() -> None:
            told()
            _leave(trace, *line)

        if streamed:
            response.call_on_close(leave)
        else:
            leave()
        return response


def _line(response: Response) -> tuple[int, dict[str, Any]]:
    """What the log says of the request. Never its query: clients may have put a key there."""
    level = logging.DEBUG if request.path in _ASKED_OFTEN and response.status_code < 400 else logging.INFO
    return level, {
        "method": request.method[:20],
        "path": request.path[:LONGEST_PATH],
        "status": response.status_code,
        "from": request.remote_addr,
    }


def _leave(trace: Trace, level: int, fields: dict[str, Any]) -> None:
    """A turn has a line of its own, which says more."""
    if not trace.is_turn:
        told = {"key": trace.key_name, "letta_calls": trace.letta_calls, "ms": round(trace.seconds * 1000, 1)}
        log.log(level, "request", extra={"fields": {**fields, **told}})
    set_current(None)


def _timing(trace: Trace) -> str:
    """In milliseconds. Of a stream it tells what was known when the headers went."""
    total, letta, waited = trace.seconds, trace.letta_seconds, trace.waited_seconds
    parts = {"bridge": max(0.0, total - letta - waited), "letta": letta, "wait": waited, "total": total}
    return ", ".join(f"{name};dur={seconds * 1000:.1f}" for name, seconds in parts.items())
