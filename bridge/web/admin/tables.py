"""The lists of the admin pages as tables for spreadsheets (CSV, RFC 4180)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bridge.web.admin import views
from bridge.web.admin.filters import escape_invisible
from bridge.web.admin.page_data import PageData

Cell = str | int | float | bool | None
# The values of a table's columns: the name of a row's attribute or item, or what makes the cell of the row.
Columns = Mapping[str, str | Callable[[Any], Cell]]
# Spreadsheets take a cell that begins so for a formula, and run it. Some take the wide forms of = + - @ for the same.
_FORMULA = tuple("=+-@|%\uff1d\uff0b\uff0d\uff20\t\r")
# Where the semicolon separates cells, as in much of Europe, a cell of ours is cut at each and at each end of a line.
_INNER_FORMULA = re.compile(r"([;\t\r\n][\s\"']*)(?=[=+\-@|%\uff1d\uff0b\uff0d\uff20])")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the rows that match an address. `rows` reads them."""

    columns: Columns
    rows: Callable[[PageData], Iterable[Any]]


def csv_text(columns: Columns, rows: Iterable[Any]) -> str:
    """Returns the table with a line of names at the top. Every line ends with CR LF."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell_text(_cell(row, source)) for source in columns.values()] for row in rows)
    return written.getvalue()


def _cell(row: Any, source: str | Callable[[Any], Cell]) -> Cell:
    if not isinstance(source, str):
        return source(row)
    found: Cell = row[source] if isinstance(row, dict) else getattr(row, source)
    return round(found, 3) if isinstance(found, float) else found


def _cell_text(cell: Cell) -> str:
    """Returns the cell's text. Text that a spreadsheet would run gets an apostrophe before it; numbers stay numbers."""
    if cell is None or isinstance(cell, bool):
        return "" if cell is None else str(cell).lower()
    if not isinstance(cell, str):
        return str(cell)
    text = _INNER_FORMULA.sub(r"\1'", escape_invisible(cell))
    return f"'{text}" if cell.startswith(_FORMULA) or cell.lstrip().startswith(_FORMULA) else text


def _time(name: str) -> Callable[[Any], Cell]:
    """Returns what makes a cell with the time in the row's attribute; an empty cell if the time is not known."""

    def cell(row: Any) -> Cell:
        moment = getattr(row, name)
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="seconds") if moment else ""

    return cell


def _same(names: str) -> Columns:
    """Returns columns that are named as the rows' attributes."""
    return {name: name for name in names.split()}


_TOOLS: Columns = {
    "name": "client_name",
    "stub": "server_name",
    "state": "state",
    "agents": lambda row: ", ".join(agent.name for agent in row.agents),
    "digest": "digest",
    "created": _time("created"),
    "last_used": _time("last_used"),
    **_same("offers calls results errors look_wrong method"),
}
_AGENTS: Columns = {
    **_same("name id type loop model method own_tools"),
    "client_tools": "our_tools",
    "waits_for": lambda row: ", ".join(row.waits_for),
    "last_turn": _time("last_turn"),
    **_same("turns errors"),
}
_TURNS: Columns = {
    "started": _time("started"),
    "id": "id",
    "agent": "agent_name",
    "agent_id": "agent_id",
    "model": "model",
    "key": "key_name",
    **_same("dialect request_id run_id outcome failed method"),
    **_same("seconds letta_seconds waited_seconds bridge_seconds letta_calls tools"),
    "calls": "called",
    **_same("results prompt_tokens completion_tokens aside streamed user_words message"),
}
_PERIODS: Columns = {
    "start": _time("start"),
    "length": "length",
    "turns": "turns",
    "errors": lambda row: sum(row.errors.values()),
    **_same("seconds letta_seconds waited_seconds bridge_seconds"),
}
# By the name of the page that shows the same.
TABLES: Mapping[str, Table] = {
    "tools": Table(_TOOLS, views.found_tools),
    "agents": Table(_AGENTS, lambda page: views.agents_data(page)["agents"]),
    "turns": Table(_TURNS, views.found_turns),
    "activity": Table(_PERIODS, lambda page: views.activity_data(page)["periods"]),
    "usage": Table(
        _same("key turns errors prompt_tokens completion_tokens tokens"), lambda page: views.usage_data(page)["rows"]
    ),
}
