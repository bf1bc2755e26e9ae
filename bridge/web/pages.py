"""The home page, which says what this service is, and the OpenAPI description for programs."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, render_template

from bridge import __version__
from bridge.web.openapi import DESCRIPTION


def home_routes() -> Blueprint:
    routes = Blueprint("pages", __name__)

    @routes.get("/")
    def home() -> str:
        return render_template("home.html", version=__version__)

    @routes.get("/openapi.json")
    def openapi() -> Response:
        return jsonify({**DESCRIPTION, "info": {**DESCRIPTION["info"], "version": __version__}})

    return routes
