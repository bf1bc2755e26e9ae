"""The routes of the admin pages below /admin: signing in, the pages and their other forms, and the actions."""

from __future__ import annotations

from functools import partial

from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    flash,
    jsonify,
    make_response,
    redirect,
    render_template,
    request,
    session,
    url_for,
)
from werkzeug.exceptions import HTTPException, NotFound

from bridge import __version__
from bridge.dialects.openai.errors import error_object
from bridge.errors import BridgeError, Busy, InvalidRequest, LettaError, Unauthorized, UnknownPath
from bridge.operation import tried_calls
from bridge.operation.parts import Parts
from bridge.web.admin import views
from bridge.web.admin.connecting import connect_data
from bridge.web.admin.filters import add_filters
from bridge.web.admin.page_routes import add_page_and_twins
from bridge.web.admin.sessions import SignedSessions, SignIn, key_from_password, refuse_other_sites
from bridge.web.admin.trying import tried_data, try_data
from bridge.web.faults import log_fault
from bridge.web.security import CONTENT_POLICY


def admin_routes(app: Flask, parts: Parts) -> Blueprint:
    """Returns the routes of the admin pages. Without a password in the settings, every page says that they are off."""
    password = parts.settings.admin_password
    site = Blueprint("admin", __name__, url_prefix="/admin", static_folder="../static", static_url_path="static")
    sign_in = SignIn(password, parts.store)
    add_filters(app)
    if password:
        app.secret_key = key_from_password(password)
        app.session_interface = SignedSessions()
        app.config["SESSION_COOKIE_SAMESITE"] = "Lax"
    site.before_request(partial(_require_sign_in, sign_in))
    site.after_request(_allow_own_referrer_and_script)
    site.register_error_handler(Exception, _error_reply)
    site.context_processor(lambda: {"version": __version__})
    _add_sign_in(site, sign_in)
    _add_pages(site, parts)
    _add_actions(site, parts)
    _add_tries(site, parts)
    return site


# --- signing in -------------------------------------------------------------------------------------------


_OPEN = frozenset({"admin.sign_in", "admin.try_to_sign_in"})


def _require_sign_in(sign_in: SignIn) -> Response | None:
    """Returns None if the request may go on, otherwise the page "off" or a redirect to the sign-in page.
    Programs may send the password with HTTP Basic authentication.
    """
    if request.endpoint == "admin.static":
        return None
    if not sign_in.password:
        return make_response(render_template("admin/off.html"), 403)
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        refuse_other_sites(request)
    if request.endpoint in _OPEN or sign_in.is_valid_session(session):
        return None
    if request.authorization is not None and request.authorization.type == "basic":
        sign_in.check_password(request, request.authorization.password)
        return None
    if _wants_json():
        raise Unauthorized("Sign in at /admin/sign-in, or send the password with HTTP Basic authentication.")
    back = request.full_path.rstrip("?") if request.method == "GET" and request.path != url_for("admin.home") else None
    return _redirect_to(url_for("admin.sign_in", next=back))


def _add_sign_in(site: Blueprint, sign_in: SignIn) -> None:
    @site.get("/sign-in", endpoint="sign_in")
    def show_form() -> str:
        return render_template("admin/sign_in.html", next=_own_path(request.args.get("next")))

    @site.post("/sign-in")
    def try_to_sign_in() -> Response:
        following = _own_path(request.form.get("next"))
        try:
            sign_in.check_password(request, request.form.get("password"))
        except (Unauthorized, Busy) as refusal:
            current_app.logger.warning("operator: sign-in refused: %s", refusal.code)
            page = render_template("admin/sign_in.html", next=following, refusal=refusal.message)
            return _with_retry_after(make_response(page, refusal.status), refusal)
        sign_in.begin_session(session)
        current_app.logger.info("operator: signed in")
        return _redirect_to(request.script_root + following if following else url_for("admin.home"))

    @site.post("/sign-out")
    def sign_out() -> Response:
        sign_in.end_session(session)
        current_app.logger.info("operator: signed out")
        return _redirect_to(url_for("admin.sign_in"))


def _own_path(path: str | None) -> str:
    """Returns the path if it is an admin page, otherwise "". Anybody may have written the path into the address.
    Browsers understand some paths, such as those with a backslash, as addresses of another host.
    """
    return path if path and path.startswith("/admin/") and "\\" not in path and path.isprintable() else ""


# --- pages ------------------------------------------------------------------------------------------------


def _add_pages(site: Blueprint, parts: Parts) -> None:
    @site.get("/")
    def home() -> Response:
        return _redirect_to(url_for("admin.tools"))

    add_page = partial(add_page_and_twins, site, parts)
    add_page("/tools", "tools", views.tools_data)
    add_page("/tools/<key>", "tool", views.tool_data)
    add_page("/agents", "agents", views.agents_data)
    add_page("/agents/<agent_id>", "agent", views.agent_data)
    add_page("/activity", "activity", views.activity_data)
    add_page("/turns", "turns", views.turns_data)
    add_page("/usage", "usage", views.usage_data)
    add_page("/health", "health", views.health_data)
    add_page("/connect", "connect", connect_data)
    add_page("/try", "try", try_data)
    add_page("/try/<try_id>", "tried", tried_data)

    @site.get("/<path:anything>")
    def unknown_page(anything: str) -> Response:
        raise UnknownPath("There is no such page.")


# --- actions ----------------------------------------------------------------------------------------------


def _add_actions(site: Blueprint, parts: Parts) -> None:
    @site.get("/do/<action>")
    def confirm(action: str) -> str:
        target = request.args.get("target", "")
        intent = parts.operator.plan(action, target)
        back = url_for("admin.tool", key=target) if action == "delete" else _page_after(action, target)
        return render_template("admin/confirm.html", intent=intent, action=action, target=target, back=back)

    @site.post("/do/<action>")
    def do_action(action: str) -> Response:
        target = request.form.get("target", "")
        flash(parts.operator.do(action, target))
        return _redirect_to(_page_after(action, target))


def _add_tries(site: Blueprint, parts: Parts) -> None:
    @site.post("/try")
    def begin_try() -> Response:
        form = request.form
        try_id = tried_calls.begin_try(parts, form.get("tool", ""), form.get("agent", ""), form.get("words", ""))
        current_app.logger.info("operator: tries a call")
        return _redirect_to(url_for("admin.tried", try_id=try_id))

    @site.post("/try/<try_id>")
    def answer_try(try_id: str) -> Response:
        form, tried = request.form, tried_calls.read_try(parts.store, try_id)
        text, is_error, stop = form.get("result", ""), "is_error" in form, "stop" in form
        tried_calls.answer_try(parts.store, tried, text, is_error=is_error, stop=stop)
        return _redirect_to(url_for("admin.tried", try_id=try_id))


def _page_after(action: str, target: str) -> str:
    of_agents = ("resync", "detach", "close")
    return url_for("admin.agent", agent_id=target) if action in of_agents else url_for("admin.tools")


# --- replies ----------------------------------------------------------------------------------------------


def _error_reply(fault: Exception) -> Response:
    failure = log_fault(_as_bridge_error(fault), current_app.logger)
    if _wants_json():
        response = jsonify(error_object(failure))
    else:
        is_down = isinstance(failure, LettaError) and failure.status >= 500
        response = make_response(render_template("admin/error.html", failure=failure, is_down=is_down))
    response.status_code = failure.status
    if failure.status == 401:
        response.headers["WWW-Authenticate"] = 'Basic realm="Letta tool bridge", charset="UTF-8"'
    return _with_retry_after(response, failure)


def _as_bridge_error(fault: Exception) -> Exception:
    if isinstance(fault, NotFound):
        return UnknownPath("There is no such page.")
    return InvalidRequest(fault.description or fault.name) if isinstance(fault, HTTPException) else fault


def _with_retry_after(response: Response, failure: BridgeError) -> Response:
    if failure.retry_after is not None:
        response.headers["Retry-After"] = str(failure.retry_after)
    return response


def _wants_json() -> bool:
    """Returns whether a program asks, which gets errors as JSON."""
    return request.path.endswith((".json", ".csv"))


def _redirect_to(address: str) -> Response:
    """Returns a redirect with status 303: the browser gets the address with GET, also after a POST."""
    response = redirect(address, 303)
    assert isinstance(response, Response)
    return response


def _allow_own_referrer_and_script(response: Response) -> Response:
    """Makes browsers send the header Origin, by which refuse_other_sites() knows requests of other sites. Lets pages
    run the scripts of the static folder, which ask only this service.
    """
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Content-Security-Policy"] = f"{CONTENT_POLICY}; script-src 'self'; connect-src 'self'"
    return response
