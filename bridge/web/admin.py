"""The operator's page: what the bridge has put on the Letta server."""

from __future__ import annotations

from flask import Blueprint, Response, make_response, render_template, request

from bridge.config import Settings
from bridge.letta.gateway import Gateway
from bridge.web.security import password_matches


def admin(settings: Settings, gateway: Gateway) -> Blueprint:
    pages = Blueprint("admin", __name__, url_prefix="/admin", static_folder="static", static_url_path="static")

    @pages.before_request
    def need_password() -> Response | None:
        if request.endpoint == "admin.static":
            return None
        if not settings.admin_password:
            return make_response(render_template("admin/off.html"), 403)
        shown = request.authorization
        if shown is not None and password_matches(shown.password, settings.admin_password):
            return None
        response = make_response(render_template("admin/sign_in.html"), 401)
        response.headers["WWW-Authenticate"] = 'Basic realm="Letta tool bridge", charset="UTF-8"'
        return response

    @pages.get("/")
    def overview() -> str:
        return render_template("admin/overview.html", version=gateway.features().version_text, agents=gateway.agents())

    return pages
