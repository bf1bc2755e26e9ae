"""Stubs that no agent has had for a while leave the server, and so do helper agents whose request is long over.

The server is the only memory: a stub found attached nowhere is marked with the time, and one that carries the mark for
long enough is deleted. A turn may begin to use a stub at that very moment, so the last step is a handshake. The stub is
first marked as leaving, which every turn sees in the answer to attaching it and takes for a reason to use another one.
A turn that attached it before the mark is seen in a second look at the agents, and the stub stays.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bridge.errors import LettaError
from bridge.letta.gateway import AgentSummary, Gateway, Tool
from bridge.sync.inventory import OwnTool, inventory, with_users
from bridge.sync.ownership import (
    idle_since,
    is_leaving,
    is_marked,
    marked_idle,
    marked_leaving,
    unmarked,
)
from bridge.sync.races import may_be_a_race

# Longer than a call of a turn is on its way: what was sent before a stub was marked as leaving has then been answered.
GRACE = 2.0
# Seconds after which the request that a helper agent was made for has ended, or the bridge that served it.
HELPER_LIFE = 3600.0

Fate = Literal["deleted", "marked", "unmarked", "kept"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is to become of our tools, or what became of them; `kept` are those that need nothing.

    `helpers` are agents of ours that are removed, left over from requests that were broken off.
    """

    deleted: tuple[Tool, ...] = ()
    marked: tuple[Tool, ...] = ()
    unmarked: tuple[Tool, ...] = ()
    kept: tuple[Tool, ...] = ()
    helpers: tuple[AgentSummary, ...] = ()


def plan_sweep(owned: Sequence[OwnTool], now: float, longest_idle: float) -> Sweep:
    fates: defaultdict[Fate, list[Tool]] = defaultdict(list)
    for own in owned:
        fates[_fate(own, now, longest_idle)].append(own.tool)
    deleted, marked, unmarked, kept = (tuple(fates[fate]) for fate in get_args(Fate))
    return Sweep(deleted, marked, unmarked, kept)


def sweep(
    gateway: Gateway,
    longest_idle: float,
    *,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Sweep:
    """Do what the plan says, as far as it still holds. Safe at any moment, and any number of times at once."""
    now = clock()
    left_over = tuple(agent for agent in gateway.helpers() if now - agent.created >= HELPER_LIFE)
    plan = replace(plan_sweep(inventory(gateway), now, longest_idle), helpers=left_over)
    if dry_run:
        return plan
    for agent in plan.helpers:
        gateway.delete_agent(agent.id)
    return Sweep(
        deleted=_delete(gateway, plan.deleted, pause),
        marked=_each(plan.marked, lambda tool: gateway.tag_tool(tool.id, marked_idle(tool, int(now)))),
        unmarked=_each(plan.unmarked, lambda tool: gateway.tag_tool(tool.id, unmarked(tool))),
        kept=plan.kept,
        helpers=plan.helpers,
    )


def _fate(own: OwnTool, now: float, longest_idle: float) -> Fate:
    """A mark from the future (the clock was put back) counts as none."""
    if own.is_used:
        return "unmarked" if is_marked(own.tool) else "kept"
    since = idle_since(own.tool)
    if since is None or since > now:
        return "marked"
    return "deleted" if now - since >= longest_idle else "kept"


def _delete(gateway: Gateway, overdue: Sequence[Tool], pause: Callable[[float], None]) -> tuple[Tool, ...]:
    leaving = _each(overdue, lambda tool: gateway.tag_tool(tool.id, marked_leaving(tool)))
    if not leaving:
        return ()
    pause(GRACE)
    agents = gateway.whole_agents()
    fresh = {tool.id: tool for tool in gateway.tools_named([tool.name for tool in leaving])}
    still = with_users([tool for tool in leaving if tool.id in fresh and is_leaving(fresh[tool.id])], agents)
    _each([own.tool for own in still if own.is_used], lambda tool: gateway.tag_tool(tool.id, unmarked(tool)))
    return _each([own.tool for own in still if not own.is_used], lambda tool: gateway.delete_tool(tool.id))


def _each(tools: Sequence[Tool], change: Callable[[Tool], None]) -> tuple[Tool, ...]:
    """Those that were changed; one that somebody else changed or removed meanwhile is left to the next sweep."""
    changed = []
    for tool in tools:
        try:
            change(tool)
        except LettaError as fault:
            if not may_be_a_race(fault):
                raise
        else:
            changed.append(tool)
    return tuple(changed)
