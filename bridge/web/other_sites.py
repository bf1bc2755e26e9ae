"""Recognises and refuses requests that pages of other sites make a browser send.

A browser on the right machine reaches a service that its pages' owners could not reach themselves.
"""

from __future__ import annotations

from flask import Request

from bridge.errors import Forbidden, WrongContentType


def is_from_other_site(request: Request) -> bool:
    """Returns whether a page of another site sent the request; False for requests that no page sent.
    Browsers send Sec-Fetch-Site; for old browsers, and over plain HTTP, Origin must name this host.
    """
    site, origin = request.environ.get("HTTP_SEC_FETCH_SITE"), request.environ.get("HTTP_ORIGIN")
    if site is not None:
        return site not in ("same-origin", "none")
    return origin is not None and origin.partition("://")[2] != request.host


def refuse_pages(request: Request, origins: frozenset[str]) -> None:
    """Refuses requests of pages, except those of `origins` ("*": all), for a service without keys.
    Browsers send JSON only after they have asked whether the page may (CORS), but other content types at once.
    """
    if request.method in ("GET", "HEAD", "OPTIONS"):
        return
    origin = request.environ.get("HTTP_ORIGIN", "")
    if is_from_other_site(request) and not origins & {"*", origin}:
        raise Forbidden(
            f"A page of another site sent this (Origin: {origin or 'not given'!r:.100}). To allow it, name its origin"
            " in BRIDGE_CORS_ORIGINS, or give the page a key of BRIDGE_API_KEYS.",
            code="origin_not_allowed",
        )
    if request.method == "POST" and not request.is_json:  # browsers ask before they send the other methods
        raise WrongContentType(
            "Send the header `Content-Type: application/json` (curl: -H 'Content-Type: application/json'). It is needed"
            " because this service has no keys (BRIDGE_API_KEYS): any web page can send other types."
        )
