"""The commands about clients' tools: `tools` lists them, `sweep` deletes idle ones, `purge` removes all."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict

import click

from bridge.cli.service import Service
from bridge.cli.showing import (
    Row,
    as_json,
    report_failures,
    rows_as_table,
    show_json,
    show_rows,
    time_as_text,
    to_printable,
)
from bridge.errors import StoreUnavailable
from bridge.history.records import PastCall, ToolUse
from bridge.operation.overview import MEANINGS, ToolRow, tool_rows
from bridge.operation.parts import Parts
from bridge.operation.removal import Remains, find_remains, remove_all_from_server
from bridge.operation.wording import number_with_noun
from bridge.sync import cleanup
from bridge.sync.ownership import client_name_of


def add_tools(group: click.Group, service: Service) -> None:
    @group.group("tools", invoke_without_command=True, help="The clients' tools that are on the Letta server.")
    @as_json
    @click.pass_context
    @report_failures
    def tools(context: click.Context, as_json: bool) -> None:
        if context.invoked_subcommand is None:
            _show_list(service.parts, as_json)

    @tools.command("list", help="List them, with how often they were called.")
    @as_json
    @report_failures
    def list_tools(as_json: bool) -> None:
        _show_list(service.parts, as_json)

    @tools.command("gone", help="List tools that were offered lately, but are not on the server.")
    @as_json
    @report_failures
    def gone(as_json: bool) -> None:
        show_rows(
            [_shown_row(row) for row in _read_rows(service.parts) if not row.tool_id], as_json, "No tool is gone."
        )

    @tools.command("show", help="One tool, by name, digest or id: both schemas, agents, last calls.")
    @click.argument("name")
    @as_json
    @report_failures
    def show_tool(name: str, as_json: bool) -> None:
        _show_tools_named(service.parts, name, as_json)

    @group.command("sweep", help="Mark tools that no agent has, and delete those marked for longer than the limit.")
    @click.option("--dry-run", is_flag=True, help="Only show what would be done.")
    @as_json
    @report_failures
    def sweep(dry_run: bool, as_json: bool) -> None:
        done = cleanup.sweep_server(
            service.parts.gateway, service.settings.stub_idle, service.settings.most_idle_stubs, dry_run=dry_run
        )
        changes = {"deleted": done.deleted, "marked idle": done.marked, "in use again": done.unmarked}
        rows = [_swept_row(what, client_name_of(tool), tool.name) for what, tools in changes.items() for tool in tools]
        rows += [_swept_row("removed helper agent", "", agent.name) for agent in done.helpers]
        kept = number_with_noun(len(done.kept), "tool")
        _announce_dry_run(dry_run, rows, as_json)
        show_rows(rows, as_json, f"Nothing to do: {kept} of clients, none of them idle for long.")

    @group.command("purge", help="Remove all that the bridge ever put on this Letta server, before you uninstall it.")
    @click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @as_json
    @report_failures
    def purge(dry_run: bool, yes: bool, as_json: bool) -> None:
        _purge_server(service.parts, dry_run, yes, as_json)


def _show_list(parts: Parts, as_json: bool) -> None:
    rows = [_shown_row(row) for row in _read_rows(parts) if row.tool_id]
    show_rows(rows, as_json, "No tool of a client is on the server.")


def _read_rows(parts: Parts) -> list[ToolRow]:
    """Returns all tools of clients: those on the Letta server, and those that the history knows."""
    tools, agents = parts.gateway.tools(), parts.gateway.whole_agents()
    return tool_rows(tools, agents, _read_uses(parts), time.time(), parts.settings.stub_idle)


def _read_uses(parts: Parts) -> dict[str, ToolUse]:
    try:
        return parts.activity.tool_uses()
    except StoreUnavailable as failure:
        click.echo(f"{failure.message} So calls are missing here.", err=True)
        return {}


def _shown_row(row: ToolRow) -> Row:
    return {
        "client_name": row.client_name,
        "server_name": row.server_name or None,
        "state": row.state,
        "digest": row.digest[:12],
        "agents": [{"id": agent.id, "name": agent.name} for agent in row.agents],
        "calls": row.calls,
        "errors": row.errors,
        "last_used": time_as_text(row.last_used),
        "idle_since": time_as_text(row.idle_since),
    }


def _show_tools_named(parts: Parts, name: str, as_json: bool) -> None:
    found = [row for row in _read_rows(parts) if _has_name(row, name)]
    if not found:
        raise click.ClickException(f"There is no tool of a client called {to_printable(name)}; `tools` lists them.")
    if as_json:
        show_json([_tool_details(parts, row) for row in found])
    else:
        for row in found:
            _print_tool(parts, row)


def _has_name(row: ToolRow, name: str) -> bool:
    """Returns whether `name` is a name or the id of the tool, or at least the first 8 characters of its digest."""
    starts = len(name) >= 8 and row.digest.startswith(name)
    return starts or name in (row.client_name, row.server_name, row.tool_id)


def _tool_details(parts: Parts, row: ToolRow) -> Row:
    """Returns the JSON of `tools show`. What the client sent is None if unknown."""
    card = parts.activity.tool_card(row.digest)
    return {
        **_shown_row(row),
        "digest": row.digest,
        "tool_id": row.tool_id or None,
        "as_sent": None if card is None else {"description": card.description, "parameters": card.parameters},
        "as_letta_has_it": None if card is None else card.json_schema,
        "changes": [] if card is None else list(card.changes),
        "last_calls": [asdict(call) for call in parts.activity.newest_calls_of_tool(row.digest)[:10]],
    }


def _print_tool(parts: Parts, row: ToolRow) -> None:
    card = parts.activity.tool_card(row.digest)
    click.secho(to_printable(row.client_name), bold=True)
    facts = [
        ("state", f"{row.state}: {MEANINGS[row.state]}"),
        ("stub", f"{row.server_name or '-'} {row.tool_id}"),
        ("digest", row.digest),
        ("agents", ", ".join(agent.name for agent in row.agents) or "-"),
        ("calls", f"{row.calls}, with {number_with_noun(row.results, 'result')}, of which {row.errors} failed"),
        ("last used", time_as_text(row.last_used) or "-"),
    ]
    click.echo("\n".join(f"  {name:10}{to_printable(value)}" for name, value in facts))
    if card is not None:
        click.echo(f"  {'as sent':10}{json.dumps(card.parameters)}")
        for place, change in enumerate(card.changes):
            click.echo(f"  {'' if place else 'changed':10}{to_printable(change)}")
    if calls := parts.activity.newest_calls_of_tool(row.digest)[:10]:
        click.echo(rows_as_table([_call_row(call) for call in calls]))


def _call_row(call: PastCall) -> Row:
    return {
        "called": time_as_text(call.at),
        "agent": call.agent_name,
        "arguments": call.arguments[:60],
        "result": "-" if call.result is None else call.result[:60],
    }


def _announce_dry_run(dry_run: bool, rows: list[Row], as_json: bool) -> None:
    if dry_run and rows and not as_json:
        click.echo("Nothing was changed. A sweep would do this:", err=True)


def _swept_row(what: str, client_name: str, server_name: str) -> Row:
    return {"done": what, "client_name": client_name, "server_name": server_name}


def _purge_server(parts: Parts, dry_run: bool, yes: bool, as_json: bool) -> None:
    found = find_remains(parts.gateway)
    if not found.steps:
        show_rows([], as_json, "There is nothing of the bridge on this server.")
        return
    what = _remains_in_words(found)
    if dry_run:
        rows = [{"tool": tool.name, "client_name": client_name_of(tool)} for tool in found.tools]
        show_rows(rows, as_json, "No tools.")
        click.echo(f"Would be removed: {what}.", err=True)
        return
    if not yes:
        question = f"Remove {what}? Bridges that still run create their tools again with the next request."
        click.confirm(question, abort=True, err=True)
    done = _run_with_progress(remove_all_from_server(parts.gateway, found, parts.offering, parts.hold), found.steps)
    parts.snapshots.outdate()
    show_rows([{"done": one} for one in done], as_json, "")


def _remains_in_words(found: Remains) -> str:
    parts = [
        f"{number_with_noun(len(found.tools), 'tool')} of clients",
        f"what the bridge added to {number_with_noun(len(found.agents), 'agent')}",
        f"{number_with_noun(len(found.helpers), 'helper agent')}",
        f"{number_with_noun(len(found.blocks), 'memory block')} that no agent has",
    ]
    if found.agents_with_chats:
        agents = number_with_noun(len(found.agents_with_chats), "agent")
        parts.insert(2, f"the lists of chats of {agents} (the main chat comes back into the context)")
    return ", ".join(parts)


def _run_with_progress(steps: Iterable[str], count: int) -> list[str]:
    """Runs the `steps` by reading their sentences, under a progress bar, and returns the sentences."""
    with click.progressbar(steps, length=count, label="removing", file=sys.stderr) as bar:
        return list(bar)
