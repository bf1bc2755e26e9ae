"""Removes stubs that no agent has had for a while, and helper agents of requests that have ended long ago.

The server is the only memory: a stub that no agent has is marked with the time, and is deleted when the mark is old
enough. A turn may begin to use the stub at that moment, so deleting takes three steps. First the stub is marked as
leaving. Every turn sees this mark in Letta's answer when it attaches the stub, and then uses another stub. Then the
agents are read again: if a turn attached the stub before it was marked, the stub stays. Only then is it deleted.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bridge.errors import LettaError
from bridge.letta.gateway import AgentSummary, Gateway, Tool
from bridge.sync.inventory import OwnTool, list_own_tools, own_tools_with_agents
from bridge.sync.ownership import (
    has_sweep_tag,
    idle_since,
    is_leaving,
    tags_when_idle,
    tags_when_leaving,
    tags_without_sweep,
)
from bridge.sync.races import may_be_a_race

# Longer than a turn's call to Letta takes: calls sent before a stub was marked as leaving have then been answered.
GRACE = 2.0
# After so many seconds the request that a helper agent was made for has ended, or the bridge that served it has.
HELPER_LIFE = 3600.0

Outcome = Literal["deleted", "marked", "unmarked", "kept"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep will do with our tools, or what it did; `kept` are those that need nothing.

    `helpers` are agents of ours that are removed. They are left over from requests that were interrupted.
    """

    deleted: tuple[Tool, ...] = ()
    marked: tuple[Tool, ...] = ()
    unmarked: tuple[Tool, ...] = ()
    kept: tuple[Tool, ...] = ()
    helpers: tuple[AgentSummary, ...] = ()


def plan_sweep(owned: Sequence[OwnTool], now: float, longest_idle: float) -> Sweep:
    tools: defaultdict[Outcome, list[Tool]] = defaultdict(list)
    for own in owned:
        tools[_outcome(own, now, longest_idle)].append(own.tool)
    deleted, marked, unmarked, kept = (tuple(tools[outcome]) for outcome in get_args(Outcome))
    return Sweep(deleted, marked, unmarked, kept)


def sweep_server(
    gateway: Gateway,
    longest_idle: float,
    *,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Sweep:
    """Does what the plan says, as far as it is still right. It can run at any time, and several times at once."""
    now = clock()
    left_over = tuple(agent for agent in gateway.helpers() if now - agent.created >= HELPER_LIFE)
    plan = replace(plan_sweep(list_own_tools(gateway), now, longest_idle), helpers=left_over)
    if dry_run:
        return plan
    for agent in plan.helpers:
        gateway.delete_agent(agent.id)
    return Sweep(
        deleted=_delete(gateway, plan.deleted, pause),
        marked=_try_each(plan.marked, lambda tool: gateway.tag_tool(tool.id, tags_when_idle(tool, int(now)))),
        unmarked=_try_each(plan.unmarked, lambda tool: gateway.tag_tool(tool.id, tags_without_sweep(tool))),
        kept=plan.kept,
        helpers=plan.helpers,
    )


def _outcome(own: OwnTool, now: float, longest_idle: float) -> Outcome:
    """Ignores a mark from the future, which means that the clock was put back."""
    if own.is_used:
        return "unmarked" if has_sweep_tag(own.tool) else "kept"
    since = idle_since(own.tool)
    if since is None or since > now:
        return "marked"
    return "deleted" if now - since >= longest_idle else "kept"


def _delete(gateway: Gateway, overdue: Sequence[Tool], pause: Callable[[float], None]) -> tuple[Tool, ...]:
    leaving = _try_each(overdue, lambda tool: gateway.tag_tool(tool.id, tags_when_leaving(tool)))
    if not leaving:
        return ()
    pause(GRACE)
    agents = gateway.whole_agents()
    fresh = {tool.id: tool for tool in gateway.tools_named([tool.name for tool in leaving])}
    still = own_tools_with_agents([tool for tool in leaving if tool.id in fresh and is_leaving(fresh[tool.id])], agents)
    _try_each(
        [own.tool for own in still if own.is_used], lambda tool: gateway.tag_tool(tool.id, tags_without_sweep(tool))
    )
    return _try_each([own.tool for own in still if not own.is_used], lambda tool: gateway.delete_tool(tool.id))


def _try_each(tools: Sequence[Tool], change: Callable[[Tool], None]) -> tuple[Tool, ...]:
    """Returns those that were changed. What somebody else changes or removes at the same time is for the next sweep."""
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
