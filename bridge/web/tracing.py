"""Gives every request a trace, and shows the trace in headers of the response, a log line and the metrics."""

from __future__ import annotations

import logging
from typing import Any

from flask import Flask, Request, Response, request
from flask.globals import request_ctx

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
        environ = request.environ
        set_current_trace(Trace(environ.get("HTTP_X_REQUEST_ID", ""), environ.get("HTTP_TRACEPARENT", "")))

    @app.after_request
    def report_trace(response: Response) -> Response:
        trace, asked = current_trace(), request_ctx.request
        response.headers["X-Request-Id"] = trace.request_id
        if is_api_path(asked.path):
            response.headers["X-Bridge-Letta-Calls"] = str(trace.letta_calls)
            response.headers["Server-Timing"] = _server_timing(trace)
        streamed = response.mimetype == "text/event-stream"
        if streamed:
            metrics.count_open_stream()
        route, method, status = asked.url_rule.rule if asked.url_rule else "", asked.method, response.status_code
        # A turn has a line of its own in the log.
        line = None if trace.is_turn else _log_level_and_fields(asked, status)

        def end_request() -> None:  # without the response, which has this function
            metrics.count_request(route, method, status, trace, streamed=streamed)
            if line:
                _log_request(trace, *line)
            set_current_trace(None)

        if streamed:
            response.call_on_close(end_request)
        else:
            end_request()
        return response


def _log_level_and_fields(asked: Request, status: int) -> tuple[int, dict[str, Any]]:
    """Returns the level and the fields of the request's log line. The query is left out: it may have a key in it."""
    is_usual = status == NOT_MODIFIED or (asked.path in _ASKED_OFTEN and status < 400)
    level = logging.DEBUG if is_usual else logging.INFO
    return level, {
        "method": asked.method[:20],
        "path": asked.path[:LONGEST_PATH],
        "status": status,
        "from": asked.remote_addr,
    }


def _log_request(trace: Trace, level: int, fields: dict[str, Any]) -> None:
    costs = {"key": trace.key_name, "letta_calls": trace.letta_calls, "ms": round(trace.seconds * 1000, 1)}
    log.log(level, "request", extra={"fields": {**fields, **costs}})


def _server_timing(trace: Trace) -> str:
    """Returns the Server-Timing header in milliseconds; for a stream, until its headers were sent."""
    total, letta, waited = trace.seconds * 1000, trace.letta_seconds * 1000, trace.waited_seconds * 1000
    bridge = max(0.0, total - letta - waited)
    return f"bridge;dur={bridge:.1f}, letta;dur={letta:.1f}, wait;dur={waited:.1f}, total;dur={total:.1f}"
