"""Adds the routes of one admin page: the page itself, and the same data as JSON and CSV for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, Response, jsonify, make_response, render_template, request, url_for

from bridge.operation.parts import Parts
from bridge.web.admin.live import is_poll, page_version, unchanged_reply, with_version
from bridge.web.admin.page_data import PageData
from bridge.web.admin.sessions import is_encrypted
from bridge.web.admin.tables import TABLES, csv_text
from bridge.web.admin.views import Data

View = Callable[..., Data]


# Pages that refresh themselves, and whether they show what is on the Letta server.
LIVE = {
    **dict.fromkeys(("tools", "tool", "agents", "agent", "health"), True),
    **dict.fromkeys(("activity", "turns", "usage"), False),
}


def add_page_and_twins(site: Blueprint, parts: Parts, rule: str, name: str, view: View) -> None:
    """Adds the page `name`, its JSON twin, and its CSV twin if the page is a list. `rule` is the page's Flask route."""

    def read_data(source: PageData, **names: str) -> Data:
        return {**view(source, *names.values()), "warnings": source.warnings}

    def show_page(**names: str) -> Response:
        source = PageData(parts, request.args, polled=is_poll(), origin=_own_origin())
        version = page_version(source, uses_letta=LIVE[name]) if name in LIVE else ""
        unchanged = unchanged_reply(version) if source.polled else None
        if unchanged is not None:
            return unchanged
        page = render_template(
            f"admin/{name}.html",
            **read_data(source, **names),
            here=name,
            version_of_page=version,
            polled=source.polled,
            now=source.now,
            twin=_twin_address(f"{name}_json", names),
            csv_twin=_twin_address(f"{name}_csv", names) if name in TABLES else "",
        )
        return with_version(make_response(page), version) if version else make_response(page)

    def show_json(**names: str) -> Response:
        return jsonify(read_data(PageData(parts, request.args, origin=_own_origin()), **names))

    site.add_url_rule(f"{rule}.json", f"{name}_json", show_json)
    if name in TABLES:
        _add_csv(site, parts, rule, name)
    site.add_url_rule(rule, name, show_page)


def _add_csv(site: Blueprint, parts: Parts, rule: str, name: str) -> None:
    def show_csv() -> Response:
        table = TABLES[name]
        text = csv_text(table.columns, table.rows(PageData(parts, request.args, strict=True)))
        saved_as = {"Content-Disposition": f'attachment; filename="bridge-{name}.csv"'}
        return Response(text, mimetype="text/csv", headers=saved_as)

    site.add_url_rule(f"{rule}.csv", f"{name}_csv", show_csv)


def _own_origin() -> str:
    """Returns the bridge's address as the browser reached it, maybe by a proxy and below a path."""
    return f"{'https' if is_encrypted(request) else 'http'}://{request.host}{request.script_root}"


def _twin_address(endpoint: str, names: dict[str, str]) -> str:
    """Returns a twin's address. Arguments are added as text: `url_for` would take some names as its options."""
    values: dict[str, Any] = {**names}
    query = urlencode(list(request.args.items(multi=True)))
    return url_for(f"admin.{endpoint}", **values) + (f"?{query}" if query else "")
