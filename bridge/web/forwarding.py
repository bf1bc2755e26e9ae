"""Makes the response to a request that was passed on to Letta: Letta's answer, as it arrives."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from typing import Any
from urllib.parse import SplitResult, urlsplit

from flask import Request, Response
from werkzeug.datastructures import Headers
from werkzeug.http import parse_options_header

from bridge.errors import LettaError
from bridge.letta.gateway import ForeignAnswer
from bridge.letta.trouble import make_error
from bridge.web.answer import STREAM_HEADERS
from bridge.web.api_paths import LETTA_PATH
from bridge.web.faults import log_fault
from bridge.web.hangup import break_connection, client_is_gone, if_client_leaves
from bridge.web.reply_socket import wait_for_client
from bridge.web.room import SMALL, Room

Rewrite = Callable[[Any], Any]

log = logging.getLogger(__name__)

_ONE_AT_A_TIME = threading.Lock()

# Headers that are about Letta's host or its address, and not about the answer. The bridge sends its own.
_OF_THE_HOST = frozenset(
    {
        *("alt-svc", "clear-site-data", "date", "refresh", "server", "set-cookie", "set-cookie2"),
        *("strict-transport-security", "www-authenticate"),
    }
)


def forwarded_response(
    answer: ForeignAnswer,
    request: Request,
    *,
    base_url: str,
    prefix: str,
    rewrite: Rewrite | None = None,
    limit: int,
    room: Room,
) -> Response:
    """Returns the response for Letta's answer. `base_url` is Letta's address, `prefix` the path under which a proxy
    serves the bridge. `rewrite` changes the JSON of a successful answer, which has at most `limit` bytes, or returns it
    itself: then it is sent as it came. `room` counts the bytes that were read for that, until the response is closed.
    Closes the answer when the response is closed.
    """
    with ExitStack() as until_sent:
        until_sent.callback(answer.close)
        headers = _response_headers(answer, base_url, prefix)
        kind = parse_options_header(headers.get("Content-Type"))[0].lower()
        streamed = kind == "text/event-stream"
        body: bytes | Iterator[bytes]
        if rewrite is not None and 200 <= answer.status < 300 and _is_json(kind) and request.method != "HEAD":
            received = answer.read(limit)
            room.take(len(received))
            until_sent.callback(room.remove, len(received))
            body = _rewritten_body(received, headers, rewrite)
            headers["Content-Length"] = str(len(body))
        else:
            body = _body_as_it_arrives(answer, request.environ, may_be_silent=streamed)
        if streamed:
            headers.update(STREAM_HEADERS)
        response = Response(body, answer.status)
        response.headers = headers
        response.call_on_close(until_sent.pop_all().close)
    return response


def _response_headers(answer: ForeignAnswer, base_url: str, prefix: str) -> Headers:
    found = Headers()
    for name, text in answer.headers:
        if name.lower() == "location":
            found.add(name, _location_here(text, base_url, prefix))
        elif name.lower() not in _OF_THE_HOST and not name.lower().startswith("access-control-"):
            found.add(name, text)
    return found


def _location_here(location: str, base_url: str, prefix: str) -> str:
    """Returns a location on Letta's host as the same one below the bridge's path for Letta; any other unchanged."""
    try:
        target, base = urlsplit(location), urlsplit(base_url)
        elsewhere = target.netloc != "" and _host_and_port(target) != _host_and_port(base)
    except ValueError:
        return location
    if elsewhere or not target.path.startswith("/"):
        return location
    path = target.path.removeprefix(base.path) if target.path.startswith(f"{base.path}/") else target.path
    return target._replace(scheme="", netloc="", path=f"{prefix}{LETTA_PATH}{path}").geturl()


def _host_and_port(url: SplitResult) -> tuple[str | None, int | None]:
    """Returns the host and the port, None for a usual one: behind a proxy, Letta may name the wrong scheme."""
    return url.hostname, None if url.port in (80, 443) else url.port


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")


def _rewritten_body(body: bytes, headers: Headers, rewrite: Rewrite) -> bytes:
    """Returns the bytes of the rewritten JSON. What can't be read is not passed on: it could not be rewritten. Bodies
    that may be large are rewritten one after the other: that takes many times their size.
    """
    with _ONE_AT_A_TIME if len(body) > SMALL else nullcontext():
        try:
            if headers.get("Content-Encoding", "identity").lower() != "identity":
                raise ValueError("Letta was asked not to compress its answer")
            value = json.loads(body)
        except (ValueError, RecursionError) as fault:
            raise make_error("not Letta") from fault
        rewritten = rewrite(value)
        return body if rewritten is value else json.dumps(rewritten, separators=(",", ":")).encode()


def _body_as_it_arrives(answer: ForeignAnswer, environ: Mapping[str, Any], *, may_be_silent: bool) -> Iterator[bytes]:
    """Yields the body. If Letta fails in its middle, breaks the client's connection: the status was sent."""
    wait_for_client(environ)
    yield b""  # gunicorn sends the headers now
    try:
        with if_client_leaves(environ, answer.abort) if may_be_silent else nullcontext():
            yield from answer.pieces
    except LettaError as fault:
        if client_is_gone(environ):
            return
        log_fault(fault, log)
        if not break_connection(environ):
            raise
