"""What each page shows, as values: the templates and the JSON twins are made from the same."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from bridge import __version__
from bridge.errors import LettaError, StoreUnavailable, UnknownPath
from bridge.history.activity import Activity
from bridge.history.records import Minute, PastCall, ToolCard, ToolUse, TurnRecord
from bridge.interception.close_held import held_request
from bridge.letta.gateway import Agent, Tool
from bridge.operation.masked import masked
from bridge.operation.overview import MEANINGS, AgentRow, agent_row, agent_rows, tool_rows
from bridge.sync import instructions
from bridge.sync.ownership import client_name_of, digest_of, is_ours
from bridge.turn import JsonObject
from bridge.web.admin.charts import errors_of, latency_chart, turns_chart
from bridge.web.admin.listing import Wanted, listed
from bridge.web.admin.page_data import PageData

Data = dict[str, Any]
Running = tuple[TurnRecord, str]
CHART_MINUTES = 60
RECENT_TURNS = 40


def tools(desk: PageData, arguments: Mapping[str, str]) -> Data:
    snapshot = desk.snapshot()
    uses: dict[str, ToolUse] = desk.recall(Activity.uses, dict)
    rows = tool_rows(snapshot.tools, snapshot.agents, uses, desk.now, desk.parts.settings.stub_idle)
    wanted = Wanted.read(arguments)
    listing = listed(rows, wanted)
    agents = sorted({(agent.name, agent.id) for row in rows for agent in row.agents})
    return {"wanted": wanted, "listing": listing, "agents": agents, "meanings": MEANINGS, "as_of": snapshot.at}


def tool(desk: PageData, key: str) -> Data:
    """One tool: as the client sent it, as Letta has it, and its last calls."""
    snapshot = desk.snapshot()
    uses: dict[str, ToolUse] = desk.recall(Activity.uses, dict)
    rows = tool_rows(snapshot.tools, snapshot.agents, uses, desk.now, desk.parts.settings.stub_idle)
    row = next((row for row in rows if key in (row.key, row.tool_id)), None)
    if row is None:
        raise UnknownPath("This tool is neither on the Letta server nor in the history.")
    card: ToolCard | None = desk.recall(lambda history: history.tool(row.digest), lambda: None)
    calls: list[PastCall] = desk.recall(lambda history: history.calls_of(row.digest), list)
    stands: Tool | None = next((one for one in snapshot.tools if one.id == row.tool_id), None)
    namesakes = [other for other in rows if other.client_name == row.client_name and other.key != row.key]
    return {
        "row": row,
        "card": card,
        "tool": stands,
        "calls": calls,
        "namesakes": namesakes,
        "meaning": MEANINGS[row.state],
    }


def agents(desk: PageData, arguments: Mapping[str, str]) -> Data:
    snapshot = desk.snapshot()
    turns: list[TurnRecord] = desk.recall(Activity.turns, list)
    running: dict[str, Running] = desk.recall(Activity.holders, dict)
    rows = agent_rows(snapshot.agents, snapshot.features, desk.parts.settings.methods, turns, running)
    words = arguments.get("q", "").strip()[:200]
    found = [row for row in rows if all(word in _text_of(row) for word in words.lower().split())]
    return {"agents": found, "total": len(rows), "q": words, "as_of": snapshot.at}


def _text_of(row: AgentRow) -> str:
    return f"{row.name} {row.id} {row.type} {row.method} {row.model}".lower()


def agent(desk: PageData, agent_id: str) -> Data:
    """One agent as it is now. Without Letta, what the history knows of it."""
    turns: list[TurnRecord] = desk.recall(lambda history: history.turns_of(agent_id), list)
    everywhere: dict[str, Running] = desk.recall(Activity.holders, dict)
    running = everywhere.get(agent_id)
    known: Data = {"id": agent_id, "turns": turns, "running": running[0] if running else None, "row": None}
    try:
        found, features = desk.parts.gateway.agent(agent_id), desk.parts.gateway.features()
        held = held_request(desk.parts.gateway, found)
    except LettaError as failure:
        if not turns:
            raise
        desk.warnings.append(f"{failure.message} Here is what the bridge remembers of the agent.")
        return {**known, "name": turns[0].agent_name}
    return {
        **known,
        "name": found.name,
        "row": agent_row(found, features, desk.parts.settings.methods, turns, running),
        "held": [call.name for call in held.calls] if held else [],
        "blocks": [block.value for block in found.blocks if instructions.is_ours(block)],
        **_tools_of(found),
    }


def _tools_of(found: Agent) -> Data:
    ours = [one for one in found.tools if is_ours(one)]
    return {
        "our_tools": [{"key": digest_of(one) or one.id, "name": client_name_of(one)} for one in ours],
        "own_tools": [one.name for one in found.tools if not is_ours(one)],
    }


def activity(desk: PageData) -> Data:
    minutes: list[Minute] = desk.recall(lambda history: history.minutes(desk.now, CHART_MINUTES), list)
    turns: list[TurnRecord] = desk.recall(Activity.turns, list)
    actions: list[JsonObject] = desk.recall(Activity.actions, list)
    return {
        "charts": [turns_chart(minutes), latency_chart(minutes)],
        "errors": errors_of(minutes),
        "minutes": minutes,
        "running": desk.recall(Activity.running, list),
        "turns": turns[:RECENT_TURNS],
        "actions": actions[:20],
    }


def health(desk: PageData) -> Data:
    settings = desk.parts.settings
    return {
        "bridge": {"version": __version__, "python": platform.python_version()},
        "letta": _letta(desk),
        "store": _store(desk),
        "workers": desk.recall(Activity.workers, list),
        "settings": masked(settings),
        "keys": len(settings.api_keys),
    }


def _letta(desk: PageData) -> Data:
    url = desk.parts.settings.letta_base_url
    try:
        features = desk.parts.gateway.features()
    except LettaError as failure:
        return {"url": url, "failure": failure.message}
    return {"url": url, "version": features.version_text, "capabilities": features.told()}


def _store(desk: PageData) -> Data:
    kind = "Redis (REDIS_URL)" if desk.parts.settings.redis_url else "SQLite file in BRIDGE_DATA_DIR"
    try:
        desk.parts.store.check()
    except StoreUnavailable as failure:
        return {"kind": kind, "failure": failure.message}
    return {"kind": kind}
