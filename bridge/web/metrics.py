"""The metrics for Prometheus. Every worker counts, and any worker can show the counts of all workers.
If PROMETHEUS_MULTIPROC_DIR is set before this module is imported (gunicorn.conf.py sets it), the workers keep their
counts in files of that folder. So the counts of a worker that died stay. Clients can't choose the value of any label.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from bridge import __version__
from bridge.errors import Forbidden, Unauthorized
from bridge.history.records import TurnRecord
from bridge.trace import Trace
from bridge.web.security import bearer_token_matches

# The HTTP methods and the types of Letta agents that labels may have. Others are counted as "other".
VERBS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
AGENT_TYPES = frozenset(
    {
        *("memgpt_agent", "memgpt_v2_agent", "letta_v1_agent", "react_agent", "workflow_agent", "split_thread_agent"),
        *("sleeptime_agent", "voice_convo_agent", "voice_sleeptime_agent"),
    }
)
# Limits of the histograms' buckets: seconds of calls to Letta, seconds of turns, numbers of tools.
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SLOW = (*QUICK, 60, 120, 300, 600)
SIZES = (0, 1, 5, 10, 25, 50, 100, 128, 256, 512, 1024)


class Metrics:
    """The metrics of this worker. `folder` has the files with the counts of all workers; "" if there is one process."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        registry = self._registry = CollectorRegistry()
        self._turns = _Labelled(
            Counter(
                "bridge_turns",
                "Turns that ended, by outcome: a finish reason, client_gone, or the code of an error.",
                ("dialect", "agent_type", "method", "outcome"),
                registry=registry,
            )
        )
        self._turn_seconds = _Labelled(
            Histogram(
                "bridge_turn_seconds",
                "Where the time of turns went: total, letta (its model included), waiting, bridge.",
                ("part",),
                buckets=SLOW,
                registry=registry,
            )
        )
        self._waited = _Labelled(
            Counter(
                "bridge_waited_seconds",
                "Seconds that turns waited, by what they waited for.",
                ("cause",),
                registry=registry,
            )
        )
        self._letta_seconds = _Labelled(
            Histogram(
                "bridge_letta_call_seconds",
                "Seconds until the answers of calls to Letta began.",
                ("call",),
                buckets=QUICK,
                registry=registry,
            )
        )
        self._tools = Histogram(
            "bridge_turn_tools", "Client tools that turns offered.", buckets=SIZES, registry=registry
        )
        self._stubs = Histogram(
            "bridge_turn_stubs_put", "Tools that had to be put on Letta for a turn.", buckets=SIZES, registry=registry
        )
        self._calls = Counter("bridge_tool_calls", "Tool calls handed to clients.", registry=registry)
        self._results = Counter("bridge_tool_results", "Results of tool calls taken from clients.", registry=registry)
        self._look_ups = _Labelled(
            Counter(
                "bridge_tool_look_ups",
                "Searches and calls of agents for tools that they were not given, answered by the bridge.",
                ("answer",),
                registry=registry,
            )
        )
        # Summed over all workers, also dead ones: one worker hands out a call, and another one may get its result.
        self._pending = Gauge(
            "bridge_tool_calls_pending",
            "Tool calls handed to clients since the start, and neither answered nor given up.",
            multiprocess_mode="sum",
            registry=registry,
        )
        self._streams = Gauge(
            "bridge_streams_open",
            "Streamed replies that are being sent.",
            multiprocess_mode="livesum",
            registry=registry,
        )
        self._requests = _Labelled(
            Counter("bridge_http_requests", "Requests answered.", ("route", "method", "status"), registry=registry)
        )
        self._errors = _Labelled(
            Counter("bridge_errors", "Errors that clients got, by their code.", ("code",), registry=registry)
        )
        info = Gauge("bridge_info", "1.", ("version",), multiprocess_mode="max", registry=registry)
        info.labels(__version__).set(1)

    def count_turn(self, turn: TurnRecord) -> None:
        """Counts a turn that ended; its results and pending calls only if no error ended it and it is not aside."""
        kind = turn.agent_type if turn.agent_type in AGENT_TYPES else "other" if turn.agent_type else "none"
        self._turns.of(turn.dialect, kind, turn.method or "none", turn.outcome).inc()
        parts = {
            "total": turn.seconds,
            "letta": turn.letta_seconds,
            "waiting": turn.waited_seconds,
            "bridge": turn.bridge_seconds,
        }
        for part, seconds in parts.items():
            self._turn_seconds.of(part).observe(seconds)
        for cause, seconds in turn.waits.items():
            self._waited.of(cause).inc(seconds)
        self._tools.observe(turn.tools)
        self._stubs.observe(turn.stubs_put)
        for step in turn.looked_up:
            self._look_ups.of("found" if step.ok else "refused").inc()
        if turn.called:
            self._calls.inc(turn.called)
        if turn.ended and not turn.aside and (turn.results or turn.called or turn.closed_calls):
            self._results.inc(turn.results)
            self._pending.inc(turn.called - turn.closed_calls)

    def observe_letta_call(self, call: str, seconds: float) -> None:
        self._letta_seconds.of(call).observe(seconds)

    def count_open_stream(self) -> None:
        self._streams.inc()

    def count_request(self, route: str, method: str, status: int, trace: Trace, *, streamed: bool) -> None:
        """Counts an answered request. `route` is the rule of the Flask route; "" for an unknown path."""
        self._requests.of(route or "none", method if method in VERBS else "other", str(status)).inc()
        if streamed:
            self._streams.dec()
        if trace.failure:
            self._errors.of(trace.failure).inc()

    def exposition_text(self) -> bytes:
        if not self._folder:
            return generate_latest(self._registry)
        collected = CollectorRegistry()
        MultiProcessCollector(collected, self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(collected)


Metric = TypeVar("Metric", Counter, Histogram)


class _Labelled(Generic[Metric]):
    """Has the parts of a metric by the values of its labels. The metric's own labels() takes three times as long."""

    def __init__(self, metric: Metric) -> None:
        self._metric: Metric = metric
        self._parts: dict[tuple[str, ...], Metric] = {}

    def of(self, *values: str) -> Metric:
        part = self._parts.get(values)
        if part is None:
            part = self._parts[values] = self._metric.labels(*values)
        return part


def metrics_routes(metrics: Metrics, token: str, *, open_to_all: bool) -> Blueprint:
    """Returns the route /metrics, which needs `token` as a bearer token.
    If `token` is "", everybody may read the metrics if the service is `open_to_all`, and otherwise nobody.
    """
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    def show_metrics() -> Response:
        if not token and not open_to_all:
            raise Forbidden(
                "The metrics are off: set BRIDGE_METRICS_TOKEN, and let Prometheus send it as a bearer token."
            )
        if token and not bearer_token_matches(request, token):
            raise Unauthorized("The metrics need their token: send `Authorization: Bearer <BRIDGE_METRICS_TOKEN>`.")
        return Response(metrics.exposition_text(), content_type=CONTENT_TYPE_LATEST)

    return routes
