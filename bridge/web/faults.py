"""Makes an error response, with the right status, of every exception that a route raises."""

from __future__ import annotations

from logging import Logger

from flask import Flask, Response, g, jsonify, request
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge, SecurityError

from bridge.dialects.base import Dialect
from bridge.dialects.openai.errors import error_object
from bridge.errors import (
    BodyTooLarge,
    BridgeError,
    InternalFailure,
    InvalidRequest,
    NoWebSocket,
    WrongMethod,
)
from bridge.trace import current_trace
from bridge.web.wrong_paths import error_for_path


def add_error_handlers(app: Flask) -> None:
    """Makes the app answer every exception with an error response. The admin pages have a handler of their own."""

    @app.errorhandler(Exception)
    def answer_any_fault(fault: Exception) -> Response:
        return _error_response(log_fault(fault, app.logger))

    @app.errorhandler(ParseException)
    def answer_garbled_chunks(fault: Exception) -> Response:
        """Answers 400. gunicorn raises the exception while the app reads a malformed body that is sent in chunks."""
        return answer_any_fault(InvalidRequest(f"The request body can't be read: {fault}"[:200], code="invalid_chunks"))

    @app.errorhandler(HTTPException)
    def answer_http_error(fault: HTTPException) -> Response:
        named = _error_from_http(fault, app.config["MAX_CONTENT_LENGTH"])
        current_trace().failure = _failure_code(named)
        response = _error_response(named)
        if isinstance(fault, MethodNotAllowed):
            response.headers["Allow"] = ", ".join(fault.valid_methods or ())
        return response


def log_fault(fault: Exception, log: Logger) -> BridgeError:
    """Logs a fault, notes its code in the request's trace, and returns the error that the client sees.
    A fault that is not a BridgeError is a defect of the bridge: only the log has the details.
    """
    current_trace().failure = _failure_code(fault)
    if isinstance(fault, BridgeError):
        fields = {"status": fault.status, "code": fault.code, "param": fault.param}
        notes = "; ".join(getattr(fault, "__notes__", ()))
        log.warning("%s", fault.message, extra={"fields": {**fields, "notes": notes}})
        return fault
    log.error("a fault of the bridge", exc_info=fault)
    return InternalFailure("The bridge failed; its log says why.")


def _failure_code(fault: Exception) -> str:
    return fault.code or fault.type if isinstance(fault, BridgeError) else "internal_error"


def _error_from_http(fault: HTTPException, limit: int) -> BridgeError:
    if isinstance(fault, RequestEntityTooLarge):
        return BodyTooLarge(f"The request body is larger than {limit} bytes.")
    if isinstance(fault, NotFound):
        return error_for_path(request.path, request.script_root)
    if isinstance(fault, MethodNotAllowed):
        usual = [method for method in fault.valid_methods or () if method not in ("HEAD", "OPTIONS")]
        return _error_from_method(" or ".join(sorted(usual)))
    if isinstance(fault, SecurityError):
        return InvalidRequest(
            "This service is not known by that host name. To use it, add it to BRIDGE_TRUSTED_HOSTS.",
            code="unknown_host",
        )
    return InvalidRequest(fault.description or fault.name)


def _error_from_method(valid: str) -> BridgeError:
    """Returns the error for a method that a route does not take. Codex asks for a web socket first if its
    settings say so, and sends its requests with POST after the status 426.
    """
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return NoWebSocket(f"There is no web socket here; this route takes {valid}.")
    return WrongMethod(f"This route takes {valid}, not {request.method:.20}.")


def _error_response(failure: BridgeError) -> Response:
    """Returns the error in the form of the route's dialect; in OpenAI's form on a route without a dialect."""
    dialect: Dialect | None = g.get("dialect")
    response = jsonify(dialect.error(failure) if dialect else error_object(failure))
    response.status_code = failure.status
    if failure.retry_after is not None:
        response.headers["Retry-After"] = str(failure.retry_after)
    if failure.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
