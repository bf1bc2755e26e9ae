"""Removes stubs that no agent has had for a while, and helper agents of requests that have ended long ago.

All that a sweep knows is stored on the Letta server, in tags. A turn may begin to use a stub while a sweep deletes it,
so deleting takes three steps. First the stub gets a tag that says that it is leaving; every turn that attaches the stub
then sees this tag, and uses another stub. Second, the agents are read again: a stub that a turn attached before the tag
stays. Only then is the stub deleted.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from bridge.errors import LettaError
from bridge.letta.gateway import AgentSummary, Gateway, Tool
from bridge.sync.inventory import OwnTool, list_own_tools, own_tools_with_agents
from bridge.sync.ownership import (
    creation_time,
    digest_of,
    has_sweep_tag,
    idle_since,
    is_leaving,
    is_ours,
    key_of,
    tags_when_idle,
    tags_when_leaving,
    tags_without_sweep,
)
from bridge.sync.races import may_be_a_race

# In seconds. Longer than a turn's call to Letta takes: after that, Letta has answered all calls that were sent before
# the stub got its tag.
GRACE = 2.0
# In seconds. After that, the request for which a helper agent was made has ended, or its worker has.
HELPER_LIFE = 3600.0

Outcome = Literal["deleted", "marked", "unmarked", "kept"]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What a sweep does: `marked` tools get a tag because no agent has them, `unmarked` ones lose it as an agent has
    them. `helpers` are agents that the bridge made for requests that were interrupted; they are deleted.
    """

    deleted: tuple[Tool, ...] = ()
    marked: tuple[Tool, ...] = ()
    unmarked: tuple[Tool, ...] = ()
    kept: tuple[Tool, ...] = ()
    helpers: tuple[AgentSummary, ...] = ()


def plan_sweep(owned: Sequence[OwnTool], now: float, longest_idle: float, most_idle: int) -> Sweep:
    """Plans a sweep at the Unix time `now`: deletes tools that no agent has had for `longest_idle` seconds, and of
    those that no agent has now, what is more than the newest `most_idle` of each client's key.
    """
    tools: defaultdict[Outcome, list[Tool]] = defaultdict(list)
    surplus = _surplus_ids(owned, now, most_idle)
    for own in owned:
        outcome = "deleted" if own.tool.id in surplus else _sweep_outcome(own, now, longest_idle)
        tools[outcome].append(own.tool)
    deleted, marked, unmarked, kept = (tuple(tools[outcome]) for outcome in get_args(Outcome))
    return Sweep(deleted, marked, unmarked, kept)


def sweep_server(
    gateway: Gateway,
    longest_idle: float,
    most_idle: int,
    *,
    dry_run: bool = False,
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Sweep:
    """Deletes stubs that no agent has had for `longest_idle` seconds, the oldest of those that no agent has where a
    client's key has more than `most_idle`, and left-over helper agents. Returns what was done. With `dry_run`, changes
    nothing. Tools that changed since the plan are left alone; several sweeps can run at once.
    """
    now = clock()
    left_over = tuple(agent for agent in gateway.helpers() if now - agent.created >= HELPER_LIFE)
    plan = replace(plan_sweep(list_own_tools(gateway), now, longest_idle, most_idle), helpers=left_over)
    if dry_run:
        return plan
    for agent in plan.helpers:
        gateway.delete_agent(agent.id)
    return Sweep(
        deleted=delete_unused_stubs(gateway, plan.deleted, pause),
        marked=_change_each_tool(plan.marked, lambda tool: gateway.tag_tool(tool.id, tags_when_idle(tool, int(now)))),
        unmarked=_change_each_tool(plan.unmarked, lambda tool: gateway.tag_tool(tool.id, tags_without_sweep(tool))),
        kept=plan.kept,
        helpers=plan.helpers,
    )


def delete_made_stubs(
    gateway: Gateway, made: Mapping[str, tuple[str, str]], pause: Callable[[float], None] = time.sleep
) -> tuple[Tool, ...]:
    """Deletes and returns those stubs in `made` (a tool's id: its name and its stub's digest) that are as they were
    made and that no agent has, in the same steps as a sweep.
    """
    named = gateway.tools_named([name for name, _ in made.values()])
    unchanged = [
        tool
        for tool in named
        if is_ours(tool) and made.get(tool.id) == (tool.name, digest_of(tool)) and not has_sweep_tag(tool)
    ]
    owned = own_tools_with_agents(unchanged, gateway.whole_agents()) if unchanged else []
    return delete_unused_stubs(gateway, [own.tool for own in owned if not own.is_used], pause)


def _surplus_ids(owned: Sequence[OwnTool], now: float, most_idle: int) -> set[str]:
    """Returns the ids of tools that no agent has, without the newest `most_idle` of each key. A tool without the tag of
    a sweep counts as idle since now.
    """
    of_keys: defaultdict[str, list[Tool]] = defaultdict(list)
    for own in owned:
        if not own.is_used:
            of_keys[key_of(own.tool)].append(own.tool)
    for tools in of_keys.values():
        tools.sort(key=lambda tool: (min(idle_since(tool) or now, now), creation_time(tool)), reverse=True)
    return {tool.id for tools in of_keys.values() for tool in tools[most_idle:]}


def _sweep_outcome(own: OwnTool, now: float, longest_idle: float) -> Outcome:
    """Returns what a sweep does with one tool. A time in the future is replaced: the clock was put back."""
    if own.is_used:
        return "unmarked" if has_sweep_tag(own.tool) else "kept"
    since = idle_since(own.tool)
    if since is None or since > now:
        return "marked"
    return "deleted" if now - since >= longest_idle else "kept"


def delete_unused_stubs(gateway: Gateway, overdue: Sequence[Tool], pause: Callable[[float], None]) -> tuple[Tool, ...]:
    """Deletes and returns those of the `overdue` stubs that still no agent has. Those that one has lose their tags."""
    leaving = _change_each_tool(overdue, lambda tool: gateway.tag_tool(tool.id, tags_when_leaving(tool)))
    if not leaving:
        return ()
    pause(GRACE)
    agents = gateway.whole_agents()
    fresh = {tool.id: tool for tool in gateway.tools_named([tool.name for tool in leaving])}
    still = own_tools_with_agents([tool for tool in leaving if tool.id in fresh and is_leaving(fresh[tool.id])], agents)
    _change_each_tool(
        [own.tool for own in still if own.is_used], lambda tool: gateway.tag_tool(tool.id, tags_without_sweep(tool))
    )
    return _change_each_tool([own.tool for own in still if not own.is_used], lambda tool: gateway.delete_tool(tool.id))


def _change_each_tool(tools: Sequence[Tool], change: Callable[[Tool], None]) -> tuple[Tool, ...]:
    """Returns the tools that were changed. What somebody else changes at the same time is left to the next sweep."""
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
