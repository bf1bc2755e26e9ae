"""The command `agents`, which lists the agents on the Letta server."""

from __future__ import annotations

import click

from bridge.cli.service import Service
from bridge.cli.showing import Row, as_json, report_failures, show_rows, time_as_text
from bridge.errors import StoreUnavailable
from bridge.history.records import TurnRecord
from bridge.operation.overview import AgentRow, agent_rows
from bridge.operation.parts import Parts


def add_agents(group: click.Group, service: Service) -> None:
    @group.command("agents", help="List the agents: type, method, tools, what they wait for.")
    @as_json
    @report_failures
    def agents(as_json: bool) -> None:
        parts = service.parts
        turns, running = _recent_and_running_turns(parts)
        whole = parts.gateway.whole_agents(blocks=True)
        rows = agent_rows(whole, parts.gateway.features(), parts.settings.methods, turns, running)
        show_rows([_shown_row(row) for row in rows], as_json, "There are no agents on the Letta server.")


def _recent_and_running_turns(parts: Parts) -> tuple[list[TurnRecord], dict[str, tuple[TurnRecord, str]]]:
    """Returns the recent turns, and by agent id the turn that runs now and its worker."""
    try:
        return parts.activity.newest_turns(), parts.activity.busy_agents()
    except StoreUnavailable as failure:
        click.echo(f"{failure.message} So turns are missing here.", err=True)
        return [], {}


def _shown_row(row: AgentRow) -> Row:
    return {
        "name": row.name,
        "id": row.id,
        "type": row.type,
        "loop": row.loop,
        "method": row.method,
        "own_tools": row.own_tools,
        "our_tools": row.our_tools,
        "system_prompt": row.block or None,
        "running_on": row.worker or None,
        "waits_for": list(row.waits_for),
        "last_turn": time_as_text(row.last_turn),
    }
