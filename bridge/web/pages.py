"""The home page, and the description of the API: for people at /docs, for programs at /openapi.json."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, render_template, request

from bridge import __version__
from bridge.web.api_page import operation_groups, schema_tables
from bridge.web.openapi.description import describe_api
from bridge.web.openapi.errors import CODES
from bridge.web.openapi.parts import Schema


def home_routes(*, letta_api: bool, needs_key: bool) -> Blueprint:
    """Returns the routes. `letta_api`: Letta's own API is described, too. `needs_key`: clients need a key."""
    routes = Blueprint("pages", __name__)

    def describe() -> Schema:
        return describe_api(request.script_root, letta_api=letta_api, needs_key=needs_key)

    @routes.get("/")
    def home() -> str:
        return render_template("home.html", version=__version__)

    @routes.get("/openapi.json")
    def openapi() -> Response:
        return jsonify(describe())

    @routes.get("/docs")
    def docs() -> str:
        description = describe()
        base = request.url_root.rstrip("/")
        return render_template(
            "docs.html",
            about=description["info"]["description"],
            base=base,
            needs_key=needs_key,
            groups=operation_groups(description, base, needs_key=needs_key),
            schemas=schema_tables(description),
            codes=CODES,
            version=__version__,
        )

    return routes
