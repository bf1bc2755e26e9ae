"""Gives every request a trace, and shows the trace in headers of the response, a log line and the metrics."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from flask import Flask, Response, request

from bridge.trace import Trace, current_trace, set_current_trace
from bridge.web.api_paths import is_api_path
from bridge.web.metrics import Metrics

log = logging.getLogger("bridge.request")

# Characters of a path that the log shows.
LONGEST_PATH = 200
# The status of an open admin page that asks again and has not changed.
NOT_MODIFIED = 304
# Platforms and monitors request these paths every few seconds.
_ASKED_OFTEN = frozenset({"/healthz", "/readyz", "/metrics"})


def trace_requests(app: Flask, metrics: Metrics) -> None:
    """Makes the app begin a trace for each request, and log and count the request when its reply was sent.
    A client may name its request in the headers X-Request-Id and traceparent. The bridge sends both to Letta, too.
    """

    @app.before_request
    def begin_trace() -> None:
        set_current_trace(Trace(request.headers.get("X-Request-Id", ""), request.headers.get("traceparent", "")))

    @app.after_request
    def report_trace(response: Response) -> Response:
        trace = current_trace()
        response.headers["X-Request-Id"] = trace.request_id
        if is_api_path(request.path):
            response.headers["X-Bridge-Letta-Calls"] = str(trace.letta_calls)
            response.headers["Server-Timing"] = _server_timing(trace)
        streamed = response.mimetype == "text/event-stream"
        if streamed:
            metrics.count_open_stream()
        route = request.url_rule.rule if request.url_rule else ""
        count = partial(metrics.count_request, route, request.method, response.status_code, trace, streamed=streamed)
        line = _log_level_and_fields(response)

        def end_request() -> None:
            count()
            _log_and_leave_trace(trace, *line)

        if streamed:
            response.call_on_close(end_request)
        else:
            end_request()
        return response


def _log_level_and_fields(response: Response) -> tuple[int, dict[str, Any]]:
    """Returns the level and the fields of the request's log line. The query is left out: it may have a key in it."""
    status = response.status_code
    is_usual = status == NOT_MODIFIED or (request.path in _ASKED_OFTEN and status < 400)
    level = logging.DEBUG if is_usual else logging.INFO
    return level, {
        "method": request.method[:20],
        "path": request.path[:LONGEST_PATH],
        "status": status,
        "from": request.remote_addr,
    }


def _log_and_leave_trace(trace: Trace, level: int, fields: dict[str, Any]) -> None:
    """Logs the request and ends this thread's trace. Requests for turns are not logged here: log_turn() does it."""
    if not trace.is_turn:
        costs = {"key": trace.key_name, "letta_calls": trace.letta_calls, "ms": round(trace.seconds * 1000, 1)}
        log.log(level, "request", extra={"fields": {**fields, **costs}})
    set_current_trace(None)


def _server_timing(trace: Trace) -> str:
    """Returns the Server-Timing header in milliseconds; for a stream, until its headers were sent."""
    total, letta, waited = trace.seconds, trace.letta_seconds, trace.waited_seconds
    parts = {"bridge": max(0.0, total - letta - waited), "letta": letta, "wait": waited, "total": total}
    return ", ".join(f"{name};dur={seconds * 1000:.1f}" for name, seconds in parts.items())
