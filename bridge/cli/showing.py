"""Shows rows on a terminal: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec

import click

from bridge.errors import BridgeError, SettingsError

Row = Mapping[str, Any]
Arguments = ParamSpec("Arguments")

as_json = click.option("--json", "as_json", is_flag=True, help="For programs: JSON instead of a table.")


def report_failures(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Shows a failure as one line, and ends with an exit code."""

    @wraps(command)
    def reported(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BridgeError as failure:
            raise click.ClickException(visible(failure.message)) from failure
        except SettingsError as faults:
            raise click.ClickException(f"The settings are wrong:\n{faults}") from faults

    return reported


def show(rows: Sequence[Row], as_json: bool, if_empty: str) -> None:
    if as_json:
        show_json(rows)
    elif not rows:
        click.echo(if_empty)
    else:
        click.echo(table(rows))


def show_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def table(rows: Sequence[Row]) -> str:
    """Writes rows of the same columns as text. Each column is as wide as its widest cell."""
    lines = [[name.replace("_", " ") for name in rows[0]], *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def visible(text: str) -> str:
    """Replaces characters that could control the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def moment(seconds: float) -> str | None:
    """Writes a time of the history, None if it is 0."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def _cell(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(item["name"] if isinstance(item, dict) else str(item) for item in value) or None
    shown = "-" if value is None else str(value)
    return "".join(char if char.isprintable() else "?" for char in shown)
