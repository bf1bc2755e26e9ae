"""Whether the process lives, and whether it can serve."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from bridge.coordination.store import Store
from bridge.letta.gateway import Gateway


def health(gateway: Gateway, store: Store) -> Blueprint:
    routes = Blueprint("health", __name__)

    @routes.get("/healthz")
    def alive() -> Response:
        return jsonify({"status": "ok"})

    @routes.get("/readyz")
    def ready() -> Response:
        store.check()
        return jsonify({"status": "ok", "letta": gateway.features().version_text})

    return routes
