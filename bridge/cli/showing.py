"""Shows the results of commands on a terminal: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec

import click

from bridge.errors import BridgeError, SettingsError

SETTINGS_ADVICE = "Start `make run`, or set them in the environment or in a file .env."

Row = Mapping[str, Any]
Arguments = ParamSpec("Arguments")

as_json = click.option("--json", "as_json", is_flag=True, help="For programs: JSON instead of a table.")


def report_failures(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Decorates a command: a failure ends the command with a message and an exit code, not with a traceback."""

    @wraps(command)
    def reported(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BridgeError as failure:
            raise click.ClickException(to_printable(failure.message)) from failure
        except SettingsError as faults:
            raise click.ClickException(f"The settings are wrong:\n{faults}\n{SETTINGS_ADVICE}") from faults

    return reported


def show_rows(rows: Sequence[Row], as_json: bool, if_empty: str) -> None:
    """Prints rows as JSON, or as a table for people. Without rows, prints [] as JSON, or the sentence `if_empty`."""
    if as_json:
        show_json(rows)
    elif not rows:
        click.echo(if_empty)
    else:
        click.echo(rows_as_table(rows))


def show_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def rows_as_table(rows: Sequence[Row]) -> str:
    """Returns rows as a table in text. There is at least one row, and all rows have the same columns."""
    head = [name.replace("_", " ") for name in rows[0]]
    lines = [head, *([_cell_text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def to_printable(text: str) -> str:
    """Returns the text with ? in place of characters that could control the terminal. Line ends stay."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def time_as_text(seconds: float) -> str | None:
    """Returns a Unix time in ISO form, in UTC. None if `seconds` is 0, which means that the time is unknown."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds") if seconds else None


def _cell_text(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(item["name"] if isinstance(item, dict) else str(item) for item in value) or None
    shown = "-" if value is None else str(value)
    return "".join(char if char.isprintable() else "?" for char in shown)
