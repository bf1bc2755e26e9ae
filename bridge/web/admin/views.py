"""Collects the values that each admin page shows. A page and its JSON twin are made from the same values."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any

from bridge import __version__
from bridge.chats.lists import ChatLists
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import LettaError, StoreUnavailable, UnknownPath
from bridge.history.activity import Activity
from bridge.history.periods import PARTS, Histogram, Period, Usage, joined, percentile, usage_by_key
from bridge.history.records import ToolCard, TurnRecord
from bridge.interception.close_held import held_request_among
from bridge.interception.stored_messages import LOOK_BACK, LOOK_FURTHER
from bridge.letta.capabilities import ServerFeatures
from bridge.letta.gateway import HELPER_PREFIX, Agent, StoredMessage, Tool
from bridge.operation.chat_rows import ChatRow, chat_rows
from bridge.operation.comparison import LinePair, compare_tools
from bridge.operation.masked import mask_settings
from bridge.operation.overview import MEANINGS, AgentRow, ToolRow, agent_row, agent_rows, tool_rows
from bridge.operation.snapshots import Snapshot
from bridge.sync import instructions
from bridge.sync.ownership import client_name_of, digest_of, is_ours
from bridge.web.admin.charts import count_errors, latency_chart, turns_chart
from bridge.web.admin.listing import ListingQuery, make_listing, matching_tools
from bridge.web.admin.page_data import PageData
from bridge.web.admin.ranges import RANGES, Range, range_from_arguments
from bridge.web.admin.turn_query import TurnQuery, make_turn_listing

Data = dict[str, Any]
RECENT_TURNS = 20
RECENT_LOOKS = 20
# The methods with which a call holds the agent until its result comes.
_HOLDING = ("native", "approval", "rewrite", "relay")


def tools_data(page: PageData) -> Data:
    """Returns one page of the list of tools. `as_of` is the Unix time of the snapshot that the list is made from."""
    snapshot = page.snapshot()
    rows = _tool_rows(page, snapshot)
    wanted = ListingQuery.from_arguments(page.arguments)
    listing = make_listing(rows, wanted)
    agents = sorted({(agent.name, agent.id) for row in rows for agent in row.agents})
    return {"wanted": wanted, "listing": listing, "agents": agents, "meanings": MEANINGS, "as_of": snapshot.at}


def found_tools(page: PageData) -> list[ToolRow]:
    """Returns all tools that match the address, in the order that it wants."""
    return matching_tools(_tool_rows(page, page.snapshot()), ListingQuery.from_arguments(page.arguments))


def _tool_rows(page: PageData, snapshot: Snapshot) -> list[ToolRow]:
    uses = page.read_history(Activity.tool_uses) or {}
    return tool_rows(snapshot.tools, snapshot.agents, uses, page.now, page.parts.settings.stub_idle)


def tool_data(page: PageData, key: str) -> Data:
    """Returns one tool. `key` is the key of the tool's row, or the id of the tool on Letta."""
    snapshot = page.snapshot()
    rows = _tool_rows(page, snapshot)
    row = next((row for row in rows if key in (row.key, row.tool_id)), None)
    if row is None:
        raise UnknownPath("This tool is neither on the Letta server nor in the history.")
    card = page.read_history(lambda history: history.tool_card(row.digest))
    tool = next((one for one in snapshot.tools if one.id == row.tool_id), None)
    return {
        "row": row,
        "card": card,
        "tool": tool,
        "changes": _changes(card, tool),
        "comparison": _compare(card, tool),
        "calls": page.read_history(lambda history: history.newest_calls_of_tool(row.digest)) or [],
        "namesakes": [other for other in rows if other.client_name == row.client_name and other.key != row.key],
        "meaning": MEANINGS[row.state],
    }


def _changes(card: ToolCard | None, tool: Tool | None) -> list[str]:
    """Returns what differs between the tool as sent and as Letta has it, in words."""
    changes = list(card.changes) if card else []
    if card and tool and tool.name != card.client_name and not any(repr(tool.name) in change for change in changes):
        changes.append(f"The tool is called {tool.name!r} on the server, because another tool has its name.")
    return changes


def _compare(card: ToolCard | None, tool: Tool | None) -> list[LinePair] | None:
    """Compares the tool as the client sent it with what Letta's model is shown; None if one of them is not known."""
    schema = tool.json_schema if tool else card.json_schema if card else None
    if card is None or not schema:
        return None
    sent = {"name": card.client_name, "description": card.description, "parameters": card.parameters}
    return compare_tools(sent, schema)


def agents_data(page: PageData) -> Data:
    """Returns the agents that have all words of the address's argument `q`."""
    snapshot = page.snapshot()
    turns, running = page.read_history(Activity.newest_turns) or [], page.read_history(Activity.busy_agents) or {}
    rows = agent_rows(snapshot.agents, snapshot.features, page.parts.settings.methods, turns, running)
    query = page.arguments.get("q", "").strip()[:200]
    found = [row for row in rows if all(word in _searched_text(row) for word in query.lower().split())]
    return {"agents": found, "total": len(rows), "q": query, "as_of": snapshot.at}


def _searched_text(row: AgentRow) -> str:
    return f"{row.name} {row.id} {row.type} {row.method} {row.model}".lower()


def agent_data(page: PageData, agent_id: str) -> Data:
    """Returns one agent with its turns. If Letta fails, `row` is None, and only what the history has is returned."""
    turns = page.read_history(lambda history: history.newest_turns_of_agent(agent_id)) or []
    running = (page.read_history(Activity.busy_agents) or {}).get(agent_id)
    known: Data = {
        "id": agent_id,
        "turns": turns,
        "running": running[0] if running else None,
        "row": None,
        "chats": [],
        "looked_up": [
            {"at": turn.started + step.at, "turn": turn.id, "name": step.name, "text": step.text, "ok": step.ok}
            for turn in turns
            for step in reversed(turn.looked_up)
        ][:RECENT_LOOKS],
        "behind_search": next((turn.behind_search for turn in turns if turn.behind_search), 0),
    }
    try:
        found, features = _find_agent(page, agent_id)
        row = agent_row(found, features, page.parts.settings.methods, turns, running)
        messages = _newest_messages(page, found)
        chats = chat_rows(found, messages, turns, CALL_IDS)
    except LettaError as failure:
        if not turns:
            raise
        page.warnings.append(f"{failure.message} Here is what the bridge remembers of the agent.")
        return {**known, "name": turns[0].agent_name}
    return {
        **known,
        "name": found.name,
        "row": row,
        "held": _held_calls(page, found, row, messages, chats),
        "chats": chats,
        "blocks": [block.value for block in found.blocks if instructions.is_ours(block)],
        **_tool_lists(found),
    }


def _find_agent(page: PageData, agent_id: str) -> tuple[Agent, ServerFeatures]:
    if not page.polled:
        return page.parts.gateway.agent(agent_id), page.parts.gateway.features()
    snapshot = page.snapshot()
    found = next((agent for agent in snapshot.agents if agent.id == agent_id), None)
    if found is None:
        raise UnknownPath("The Letta server does not have this agent.")
    return found, snapshot.features


def _newest_messages(page: PageData, found: Agent) -> Sequence[StoredMessage]:
    """Reads the agent's newest messages, more of them if they are of several chats; none for a polled page."""
    if page.polled or not found.message_ids:
        return ()
    limit = LOOK_FURTHER if ChatLists.of(found).is_kept else LOOK_BACK
    return page.parts.gateway.newest_messages(found.id, limit, including=found.message_ids[-1])


def _held_calls(
    page: PageData, found: Agent, row: AgentRow, messages: Sequence[StoredMessage], chats: Sequence[ChatRow]
) -> Sequence[str]:
    """Returns the names of the calls that hold the agent. A polled page takes them from the history."""
    if page.polled:
        waits_for = next((chat.waits_for for chat in chats if chat.in_context), row.waits_for)
        return waits_for if page.snapshot().features.approvals and row.method in _HOLDING else ()
    held = held_request_among(found, messages)
    return [call.name for call in held.calls] if held else ()


def _tool_lists(found: Agent) -> Data:
    return {
        "our_tools": [
            {"key": digest_of(one) or one.id, "name": client_name_of(one)} for one in found.tools if is_ours(one)
        ],
        "own_tools": [one.name for one in found.tools if not is_ours(one)],
    }


# --- turns, activity, usage -------------------------------------------------------------------------------


def turns_data(page: PageData) -> Data:
    """Returns one page of the turns that ended, and what the form can filter by."""
    turns, wanted = _known_turns(page), TurnQuery.from_arguments(page.arguments)
    keys = {key.name for key in page.parts.settings.api_keys} | {turn.key_name for turn in turns if turn.key_name}
    return {
        "wanted": wanted,
        "listing": make_turn_listing(turns, wanted),
        "agents": sorted((name, id_) for id_, name in _named_agents(turns).items()),
        "outcomes": sorted({turn.outcome for turn in turns}),
        "keys": sorted(keys),
    }


def _named_agents(turns: Sequence[TurnRecord]) -> dict[str, str]:
    """Returns the newest known name of each agent by its id: a turn that is refused early has the id only. Leaves out
    the bridge's own helpers: each lives for one request.
    """
    names: dict[str, str] = {}
    for turn in turns:
        if turn.agent_id and not turn.agent_name.startswith(HELPER_PREFIX):
            names[turn.agent_id] = names.get(turn.agent_id) or turn.agent_name
    return names


def found_turns(page: PageData) -> list[TurnRecord]:
    """Returns all turns that match the address, the newest first."""
    wanted = TurnQuery.from_arguments(page.arguments)
    return [turn for turn in _known_turns(page) if wanted.matches(turn)]


def _known_turns(page: PageData) -> list[TurnRecord]:
    """Returns the turns in the history, the newest first; those of the wanted agent also from the agent's own list."""
    agent_id = page.arguments.get("agent", "")
    turns = page.read_history(Activity.newest_turns) or []
    if agent_id:
        turns = [*turns, *(page.read_history(lambda history: history.newest_turns_of_agent(agent_id)) or [])]
    return sorted({turn.id: turn for turn in turns}.values(), key=lambda turn: turn.started, reverse=True)


def activity_data(page: PageData) -> Data:
    wanted = range_from_arguments(page.arguments)
    periods = _periods(page, wanted)
    histograms = joined(periods, 0, 0).histograms
    return {
        "range": wanted,
        "ranges": RANGES,
        "charts": [turns_chart(periods, wanted.tick), latency_chart(periods, wanted.tick)],
        "percentiles": {part: _percentiles(histograms.get(part, {})) for part in PARTS},
        "errors": count_errors(periods),
        "periods": periods,
        "running": page.read_history(Activity.running_turns) or [],
        "turns": (page.read_history(Activity.newest_turns) or [])[:RECENT_TURNS],
        "actions": (page.read_history(Activity.newest_actions) or [])[:20],
    }


def _percentiles(histogram: Histogram) -> dict[str, float | None]:
    return {f"p{percent}": percentile(histogram, percent) for percent in (50, 95, 99)}


def usage_data(page: PageData) -> Data:
    """Returns what the turns of each key cost in a range of time, the most tokens first. Keys without turns have 0."""
    wanted = range_from_arguments(page.arguments)
    used = usage_by_key(_periods(page, wanted))
    known = {key.name: Usage() for key in page.parts.settings.api_keys} | used
    rows = [{"key": name, **asdict(usage), "tokens": usage.tokens} for name, usage in known.items()]
    rows.sort(key=lambda row: (-row["tokens"], -row["turns"], row["key"]))
    total = reduce(Usage.plus, used.values(), Usage())
    return {
        "range": wanted,
        "ranges": RANGES,
        "rows": rows,
        "total": {**asdict(total), "tokens": total.tokens},
    }


def _periods(page: PageData, wanted: Range) -> list[Period]:
    return page.read_history(lambda history: history.periods(page.now, wanted.length, wanted.count)) or []


# --- health -----------------------------------------------------------------------------------------------


def health_data(page: PageData) -> Data:
    settings = page.parts.settings
    return {
        "bridge": {"version": __version__, "python": platform.python_version()},
        "letta": _letta_state(page),
        "store": _store_state(page),
        "workers": page.read_history(Activity.workers) or [],
        "settings": mask_settings(settings),
        "keys": len(settings.api_keys),
    }


def _letta_state(page: PageData) -> Data:
    url, trouble = page.parts.settings.letta_base_url, page.letta_trouble()
    if trouble:
        return {"url": url, "failure": trouble}
    try:
        features = _features_now(page)
    except LettaError as failure:
        return {"url": url, "failure": failure.message}
    return {"url": url, "version": features.version_text, "capabilities": features.abilities_in_words()}


def _features_now(page: PageData) -> ServerFeatures:
    """Returns the server's features. Raises LettaError if Letta does not answer; a polled page asks the snapshots."""
    if not page.polled:
        return page.parts.gateway.features()
    view = page.parts.snapshots.view()
    if view.snapshot is None or view.failure is not None:
        raise view.failure or LettaError("The Letta server could not be read.")
    return view.snapshot.features


def _store_state(page: PageData) -> Data:
    kind = "Redis (REDIS_URL)" if page.parts.settings.redis_url else "SQLite file in BRIDGE_DATA_DIR"
    try:
        page.parts.store.check_writable()
    except StoreUnavailable as failure:
        return {"kind": kind, "failure": failure.message}
    return {"kind": kind}
