"""The routes that show load balancers whether the worker is alive, and whether Letta and the store answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from flask import Blueprint, Response, jsonify

from bridge import trace
from bridge.errors import BridgeError

# Seconds for which the result of a check is used again.
KEPT_SECONDS = 5.0
# Seconds that a request waits for all checks.
LONGEST_SECONDS = 5.0
# How many requests wait for one check. Anybody may send more: they get the result before, and take no thread.
MOST_WAITING = 4
OK = "ok"


class Readiness:
    """Checks the parts that the service needs. A check raises a BridgeError if its part does not answer.
    The result of a check is used for KEPT_SECONDS. states() takes at most `longest` seconds.
    """

    def __init__(self, parts: Mapping[str, Callable[[], object]], longest: float = LONGEST_SECONDS) -> None:
        self._probes = {name: _Probe(check) for name, check in parts.items()}
        self._longest = longest

    def states(self) -> dict[str, str]:
        """Returns for each part "ok", the code of its error, "failed" for an error without a code, or "timeout"."""
        deadline = time.monotonic() + self._longest
        for probe in self._probes.values():
            probe.start_check()
        return {name: probe.wait_for_state(deadline) for name, probe in self._probes.items()}


class _Probe:
    """The check of one part, which runs in a thread of its own, and the result of its last run."""

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check
        self._changed = threading.Condition()
        self._running = False
        self._waiting = 0
        self._state = ""
        self._good_until = 0.0

    def start_check(self) -> None:
        with self._changed:
            if self._running or time.monotonic() < self._good_until:
                return
            threading.Thread(target=self._run_check, name="readiness", daemon=True).start()
            self._running = True  # set after the start, which fails if there is no thread left

    def wait_for_state(self, deadline: float) -> str:
        with self._changed:
            if self._running and self._waiting >= MOST_WAITING:
                return self._state or "timeout"
            self._waiting += 1
            ended = self._changed.wait_for(lambda: not self._running, max(0.0, deadline - time.monotonic()))
            self._waiting -= 1
            return self._state if ended else "timeout"

    def _run_check(self) -> None:
        """Runs the check without a trace, so that its calls to Letta count for no request."""
        trace.set_current_trace(None)
        state = "failed"
        try:
            self._check()
            state = OK
        except BridgeError as failure:
            state = failure.code or "failed"
        finally:
            with self._changed:
                self._state, self._running = state, False
                self._good_until = time.monotonic() + KEPT_SECONDS
                self._changed.notify_all()


def health_routes(readiness: Readiness) -> Blueprint:
    """Returns the routes /healthz (200 if the worker is alive) and /readyz (200 if all parts answer, otherwise 503).
    Everybody may request these routes, so they show only the codes of errors.
    """
    routes = Blueprint("health", __name__)

    @routes.get("/healthz")
    def show_liveness() -> Response:
        return jsonify({"status": OK})

    @routes.get("/readyz")
    def show_readiness() -> Response:
        states = readiness.states()
        is_ready = set(states.values()) <= {OK}
        response = jsonify({"status": OK if is_ready else "not ready", **states})
        if not is_ready:
            response.status_code = 503
            response.headers["Retry-After"] = "5"
        return response

    return routes
