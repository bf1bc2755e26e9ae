"""CORS: clients that run in a browser, if the operator allows their origins."""

from __future__ import annotations

from flask import Flask, Response, request

METHODS = "GET, POST, HEAD, OPTIONS"
HEADERS = "Authorization, Content-Type, Idempotency-Key, X-Request-Id, traceparent, X-Bridge-Aside"
EXPOSED = "X-Bridge-Method, X-Bridge-Letta-Calls, Server-Timing, X-Request-Id, Retry-After"
KEPT_SECONDS = "600"


def allow_origins(app: Flask, origins: frozenset[str]) -> None:
    """Never allows credentials: a page has to know its key and send it in a header.

    So any header is allowed: OpenAI's own client for pages sends a handful of X-Stainless-... headers.
    """

    @app.before_request
    def answer_preflight() -> Response | None:
        asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        return Response(status=204) if asks and request.path.startswith("/v1") else None

    @app.after_request
    def add_headers(response: Response) -> Response:
        origin = request.headers.get("Origin", "")
        if not origins or not request.path.startswith("/v1"):
            return response
        response.vary.add("Origin")
        if "*" in origins or origin in origins:
            response.headers["Access-Control-Allow-Origin"] = "*" if "*" in origins else origin
            response.headers["Access-Control-Allow-Methods"] = METHODS
            asked = request.headers.get("Access-Control-Request-Headers")
            response.headers["Access-Control-Allow-Headers"] = asked or HEADERS
            response.headers["Access-Control-Expose-Headers"] = EXPOSED
            response.headers["Access-Control-Max-Age"] = KEPT_SECONDS
        return response
