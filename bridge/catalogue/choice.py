"""Chooses which tools of a large request the agent gets itself. It can only find the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from bridge.turn import ToolSpec

# How many tools of the client an agent has at most beside the three that give it access to the others. Models choose
# badly among more than some dozens.
MOST_DIRECT = 27
# The first tools of a request are those of the client itself: it adds those of other servers behind them.
FIRST = 15


def choose_direct(
    specs: Sequence[ToolSpec], named: str, always: Collection[str], used: Iterable[str]
) -> tuple[ToolSpec, ...]:
    """Returns the chosen tools in the order of the request: the one that `tool_choice` has `named`, those in `always`,
    the first ones, and as many of the `used` ones as there is room for. No more of `used` is read than is needed.
    """
    by_name = {spec.name: place for place, spec in enumerate(specs)}
    first = (spec.name for spec in specs[:FIRST])
    places: set[int] = set()
    for name in chain([named], (name for name in by_name if name in always), first, used):
        if len(places) == MOST_DIRECT:
            break
        if name in by_name:
            places.add(by_name[name])
    return tuple(specs[place] for place in sorted(places))
