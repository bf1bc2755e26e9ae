"""Rows about tools and agents for the operator, made from the Letta server's state and the history. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bridge.errors import InvalidRequest
from bridge.history.records import ToolUse, TurnRecord
from bridge.interception.choose import choose_method, explain_method
from bridge.letta.capabilities import Loop, ServerFeatures, agent_loop, features_for_agent
from bridge.letta.gateway import HELPER_PREFIX, Agent, Tool
from bridge.stubs.naming import server_name
from bridge.sync import instructions
from bridge.sync.inventory import OwnTool, own_tools_with_agents
from bridge.sync.ownership import client_name_of, creation_time, digest_of, idle_since, is_leaving, is_ours
from bridge.turn import Method, ToolChoice
from bridge.values import Methods

State = Literal["attached", "idle", "stale", "orphaned", "sent along", "gone"]
STATES = get_args(State)
MEANINGS: Mapping[State, str] = {
    "attached": "An agent has it.",
    "idle": "It is on the server, and no agent has it now.",
    "stale": "No agent has had it for so long that the next sweep deletes it.",
    "orphaned": "It was detached by hand and left a rule behind; the agent's next turn removes that.",
    "sent along": "It is sent with each message, so nothing is put on the server.",
    "gone": "It is not on the server any more; the next request that offers it creates it again.",
}


@dataclass(frozen=True, slots=True)
class AgentName:
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A client's tool as the operator sees it. `key` is the stub's digest, or else its id. `server_name` and `tool_id`
    are "" without a stub. `taken_by` says whose tool has the plain name, so that the stub got a suffix: "foreign",
    "ours", or "" if none. Times are Unix times, 0 if unknown. `errors` and `look_wrong` are as in ToolUse.
    """

    key: str
    client_name: str
    server_name: str
    tool_id: str
    digest: str
    state: State
    taken_by: Literal["", "foreign", "ours"] = ""
    agents: tuple[AgentName, ...] = ()
    created: float = 0.0
    last_used: float = 0.0
    idle_since: float = 0.0
    offers: int = 0
    calls: int = 0
    results: int = 0
    errors: int = 0
    look_wrong: int = 0
    method: str = ""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent as the operator sees it. `method` catches its tool calls ("none": no method can), for the reason `why`.
    `block` is the length of the client's system prompt in its memory. `turns` and `errors` count recent turns.
    """

    id: str
    name: str
    type: str
    loop: Loop
    model: str
    method: str
    why: str
    own_tools: int
    our_tools: int
    block: int
    running: TurnRecord | None = None
    worker: str = ""
    waits_for: tuple[str, ...] = ()
    waits_since: float = 0.0
    last_turn: float = 0.0
    turns: int = 0
    errors: int = 0


# --- tools ------------------------------------------------------------------------------------------------


def tool_rows(
    tools: Sequence[Tool], agents: Sequence[Agent], uses: Mapping[str, ToolUse], now: float, longest_idle: float
) -> list[ToolRow]:
    """Returns a row for each client tool that is on the server or was offered lately, sorted by the client's name.
    `uses` is what the history knows, by digest. A stub is stale after `longest_idle` seconds without an agent.
    """
    owned = own_tools_with_agents([tool for tool in tools if is_ours(tool)], agents)
    owners = {tool.name: "ours" if is_ours(tool) else "foreign" for tool in tools}
    rows = [_row_of_stub(own, uses.get(digest_of(own.tool)), owners, now, longest_idle) for own in owned]
    on_server = {row.digest for row in rows}
    rows += [_row_of_history(digest, use) for digest, use in uses.items() if digest not in on_server]
    return sorted(rows, key=lambda row: (row.client_name.lower(), row.server_name, row.digest))


def stub_state(own: OwnTool, now: float, longest_idle: float) -> State:
    """Returns one of the states in MEANINGS. A stub is also stale if a sweep is about to delete it."""
    if own.agents:
        return "attached"
    if own.ruled:
        return "orphaned"
    since = idle_since(own.tool)
    overdue = since is not None and now - since >= longest_idle
    return "stale" if overdue or is_leaving(own.tool) else "idle"


def _row_of_stub(
    own: OwnTool, use: ToolUse | None, owners: Mapping[str, str], now: float, longest_idle: float
) -> ToolRow:
    """Returns a stub's row, with the agents that have the stub, or else those with only a rule for it."""
    tool, client_name = own.tool, client_name_of(own.tool)
    known = _row_of_history(digest_of(tool), use or ToolUse(client_name))
    return replace(
        known,
        key=digest_of(tool) or tool.id,
        client_name=client_name,
        server_name=tool.name,
        tool_id=tool.id,
        state=stub_state(own, now, longest_idle),
        taken_by=_owner_of_plain_name(client_name, tool.name, owners),
        agents=tuple(AgentName(agent.id, agent.name) for agent in own.agents or own.ruled),
        created=float(creation_time(tool)) or known.created,
        idle_since=float(idle_since(tool) or 0),
    )


def _owner_of_plain_name(client_name: str, name: str, owners: Mapping[str, str]) -> Literal["", "foreign", "ours"]:
    """Returns whose tool has the plain name, if the stub had to get another; "" if no tool has it now. The plain name
    has two forms, because Letta servers differ in the names that they allow.
    """
    plain = {server_name(client_name, identifiers) for identifiers in (True, False)}
    if name in plain:
        return ""
    holders = {owners[other] for other in plain if other in owners}
    return "foreign" if "foreign" in holders else "ours" if holders else ""


def _row_of_history(digest: str, use: ToolUse) -> ToolRow:
    """Returns the row of a tool without a stub: the methods native and prompt make none; any other tool is gone."""
    return ToolRow(
        key=digest,
        client_name=use.client_name,
        server_name="",
        tool_id="",
        digest=digest,
        state="sent along" if use.method in ("native", "prompt") else "gone",
        created=use.since,
        last_used=use.last,
        offers=use.offers,
        calls=use.calls,
        results=use.results,
        errors=use.errors,
        look_wrong=use.look_wrong,
        method=use.method,
    )


# --- agents -----------------------------------------------------------------------------------------------


def agent_rows(
    agents: Iterable[Agent],
    features: ServerFeatures,
    methods: Methods,
    turns: Sequence[TurnRecord],
    running: Mapping[str, tuple[TurnRecord, str]],
) -> list[AgentRow]:
    """Returns the rows of all agents but the bridge's helpers, by name. `running`: by agent id, its turn and worker."""
    rows = [
        agent_row(
            agent,
            features,
            methods,
            [turn for turn in turns if turn.agent_id == agent.id and not turn.aside],
            running.get(agent.id),
        )
        for agent in agents
        if not agent.name.startswith(HELPER_PREFIX)
    ]
    return sorted(rows, key=lambda row: row.name.lower())


def agent_row(
    agent: Agent,
    features: ServerFeatures,
    methods: Methods,
    turns: Sequence[TurnRecord],
    running: tuple[TurnRecord, str] | None,
) -> AgentRow:
    """An agent without a running turn waits for the client if its newest turn, the first, has ended with calls."""
    loop = agent_loop(features.version, agent.type)
    suited = features_for_agent(features, sleeptime=agent.sleeptime)
    method, why = _method_and_reason(suited, loop, methods.for_agent(agent.id, agent.name))
    last = turns[0] if turns else None
    waits = last is not None and running is None and last.ended and last.called > 0
    return AgentRow(
        id=agent.id,
        name=agent.name,
        type=agent.type,
        loop=loop,
        model=agent.model.name,
        method=method,
        why=why,
        own_tools=sum(not is_ours(tool) for tool in agent.tools),
        our_tools=sum(map(is_ours, agent.tools)),
        block=sum(len(block.value) for block in agent.blocks if instructions.is_ours(block)),
        running=running[0] if running else None,
        worker=running[1] if running else "",
        waits_for=tuple(step.name for step in last.calls) if waits and last else (),
        waits_since=last.started + last.seconds if waits and last else 0.0,
        last_turn=last.started + last.seconds if last else 0.0,
        turns=len(turns),
        errors=sum(turn.failed for turn in turns),
    )


def _method_and_reason(features: ServerFeatures, loop: Loop, wanted: Method) -> tuple[str, str]:
    """Returns the method that catches an agent's calls, and why; "none" and the refusal if `wanted` can't be used."""
    try:
        method = choose_method(features, loop, wanted, ToolChoice()).name
    except InvalidRequest as refusal:
        return "none", refusal.message
    return method, explain_method(method, features, loop, wanted)
