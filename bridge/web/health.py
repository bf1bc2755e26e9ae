"""The routes that show load balancers whether the worker is alive, and whether Letta and the store answer."""

from __future__ import annotations

import time
from collections.abc import Mapping

from flask import Blueprint, Response, jsonify

from bridge.operation.probe import LONGEST_SECONDS, OK, Finding, Probe


class Readiness:
    """Knows by their probes whether the parts answer that the service needs. find() takes `longest` seconds at most."""

    def __init__(self, probes: Mapping[str, Probe], longest: float = LONGEST_SECONDS) -> None:
        self._probes = probes
        self._longest = longest

    def find(self) -> dict[str, Finding]:
        deadline = time.monotonic() + self._longest
        for probe in self._probes.values():
            probe.start_check()
        return {name: probe.wait(deadline) for name, probe in self._probes.items()}


def health_routes(readiness: Readiness) -> Blueprint:
    """Returns the routes /healthz (200 if the worker is alive) and /readyz (200 if all parts answer, otherwise 503).
    Everybody may request these routes, so they show only codes of errors, and reasons without addresses.
    """
    routes = Blueprint("health", __name__)

    @routes.get("/healthz")
    def show_liveness() -> Response:
        return jsonify({"status": OK})

    @routes.get("/readyz")
    def show_readiness() -> Response:
        found = readiness.find()
        states = {name: one.state for name, one in found.items()}
        reasons = {name: one.reason for name, one in found.items() if one.reason}
        is_ready = set(states.values()) <= {OK}
        shown = {"status": OK if is_ready else "not ready", **states}
        response = jsonify({**shown, "reasons": reasons} if reasons else shown)
        if not is_ready:
            response.status_code = 503
            response.headers["Retry-After"] = "5"
        return response

    return routes
