"""Lets an open admin page ask again and again whether it would look different now. That is cheap while it would not."""

from __future__ import annotations

import hashlib

from flask import Response, request

from bridge import __version__
from bridge.errors import StoreUnavailable
from bridge.web.admin.page_data import PageData

# The script of an open page sends this header.
POLL = "X-Bridge-Poll"
# Pages show ages and ranges of time, so every page changes once in so many seconds.
LONGEST_SAME = 60


def is_poll() -> bool:
    return POLL in request.headers


def page_version(page: PageData, *, uses_letta: bool) -> str:
    """Returns a text that changes when the page would show something else. Costs Letta nothing but the snapshots."""
    state = [__version__, str(int(page.now // LONGEST_SAME)), _history_state(page)]
    if uses_letta:
        state.append(_letta_state(page))
    return hashlib.sha256("\n".join(state).encode()).hexdigest()[:24]


def _history_state(page: PageData) -> str:
    """Returns the history's version, or why the store fails. Such a page says so, and changes when the store works."""
    try:
        return page.parts.activity.version()
    except StoreUnavailable as failure:
        return failure.message


def _letta_state(page: PageData) -> str:
    view = page.parts.snapshots.view()
    return f"{view.snapshot.version if view.snapshot else ''} {view.failure.message if view.failure else ''}"


def unchanged_reply(version: str) -> Response | None:
    """Returns the reply 304 if the browser has this version of the page already, otherwise None."""
    if not request.if_none_match.contains_weak(version):
        return None
    return with_version(Response(status=304), version)


def with_version(response: Response, version: str) -> Response:
    response.set_etag(version, weak=True)
    return response
