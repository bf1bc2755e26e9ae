"""The commands for a terminal: `python -m bridge ...` or `flask bridge ...`. Tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ParamSpec

import click

from bridge.config import Settings
from bridge.errors import BridgeError
from bridge.letta.gateway import Gateway, Tool
from bridge.sync import cleanup
from bridge.sync.inventory import OwnTool, inventory
from bridge.sync.ownership import client_name_of, digest_of, idle_since

Row = Mapping[str, Any]
Arguments = ParamSpec("Arguments")

as_json = click.option("--json", "as_json", is_flag=True, help="For programs: JSON instead of a table.")


def commands(settings: Settings, gateway: Gateway) -> click.Group:
    @click.group("bridge", help="Look after the Letta tool bridge.")
    def group() -> None:
        """Nothing by itself."""

    @group.command("tools", help="List the clients' tools that stand on the Letta server.")
    @as_json
    @_telling_failures
    def tools(as_json: bool) -> None:
        _show([_tool_row(own) for own in inventory(gateway)], as_json, "No tool of the bridge is on the server.")

    @group.command("sweep", help="Mark tools that no agent has, and delete those marked for longer than the limit.")
    @click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
    @as_json
    @_telling_failures
    def sweep(dry_run: bool, as_json: bool) -> None:
        done = cleanup.sweep(gateway, settings.stub_idle, dry_run=dry_run)
        fates = {"deleted": done.deleted, "marked idle": done.marked, "in use again": done.unmarked}
        rows = [_swept_row(fate, tool) for fate, tools in fates.items() for tool in tools]
        rows += [
            {"done": "removed helper agent", "client_name": "", "server_name": agent.name} for agent in done.helpers
        ]
        _show(rows, as_json, f"Nothing to do: {len(done.kept)} tools of the bridge are in use or not idle for long.")

    return group


def _telling_failures(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    @wraps(command)
    def told(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BridgeError as failure:
            raise click.ClickException(failure.message) from failure

    return told


def _tool_row(own: OwnTool) -> Row:
    since = idle_since(own.tool)
    return {
        "client_name": client_name_of(own.tool),
        "server_name": own.tool.name,
        "digest": digest_of(own.tool)[:12],
        "agents": [{"id": agent.id, "name": agent.name} for agent in own.agents],
        "idle_since": None if since is None else datetime.fromtimestamp(since, UTC).isoformat(),
    }


def _swept_row(fate: str, tool: Tool) -> Row:
    return {"done": fate, "client_name": client_name_of(tool), "server_name": tool.name}


def _show(rows: Sequence[Row], as_json: bool, otherwise: str) -> None:
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    elif not rows:
        click.echo(otherwise)
    else:
        click.echo(table(rows))


def table(rows: Sequence[Row]) -> str:
    """Rows of the same columns as text, each column as wide as its widest cell."""
    lines = [[name.replace("_", " ") for name in rows[0]], *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: Any) -> str:
    if isinstance(value, list):
        value = ", ".join(item["name"] for item in value) or None
    shown = "-" if value is None else str(value)
    return "".join(char if char.isprintable() else "?" for char in shown)
