"""CORS headers: they allow web pages of certain origins to call the API from a browser."""

from __future__ import annotations

from functools import partial

from flask import Flask, Response, request

METHODS = "GET, POST, DELETE, HEAD, OPTIONS"
HEADERS = "Authorization, Content-Type, Idempotency-Key, X-Request-Id, traceparent, X-Bridge-Aside"
EXPOSED = (
    "X-Bridge-Method, X-Bridge-Told, X-Bridge-Chat, X-Bridge-Format, X-Bridge-Letta-Calls, Server-Timing, X-Request-Id,"
    " Retry-After"
)
# Seconds for which a browser remembers what is allowed.
KEPT_SECONDS = "600"


def allow_origins(app: Flask, origins: frozenset[str]) -> None:
    """Makes the app allow pages of these origins ("*": of every origin) to read the API's responses.
    Browsers may not send cookies: a page must know its key. So pages may send any header, such as the X-Stainless-...
    headers of OpenAI's client for browsers.
    """

    @app.before_request
    def answer_preflight() -> Response | None:
        asks = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        return Response(status=204) if asks and request.path.startswith("/v1") else None

    if origins:
        app.after_request(partial(_add_headers, origins))


def _add_headers(origins: frozenset[str], response: Response) -> Response:
    if request.path.startswith("/v1"):
        origin = request.headers.get("Origin", "")
        response.vary.add("Origin")
        if "*" in origins or origin in origins:
            response.headers["Access-Control-Allow-Origin"] = "*" if "*" in origins else origin
            response.headers["Access-Control-Allow-Methods"] = METHODS
            asked = request.headers.get("Access-Control-Request-Headers")
            response.headers["Access-Control-Allow-Headers"] = asked or HEADERS
            response.headers["Access-Control-Expose-Headers"] = EXPOSED
            response.headers["Access-Control-Max-Age"] = KEPT_SECONDS
    return response
