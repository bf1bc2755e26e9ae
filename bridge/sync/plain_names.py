"""Frees names that stubs without agents hold, so that a new stub can have its plain name.

The stub of a client that nobody uses is kept for a while, because the client may come back. Its name is worth more to a
client that is here: the model should see the name that the client gave.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from bridge.errors import LettaError
from bridge.letta.gateway import Gateway, Tool
from bridge.sync.cleanup import delete_unused_stubs
from bridge.sync.ownership import idle_since, is_leaving, is_ours
from bridge.turn import Stub

log = logging.getLogger(__name__)

# Seconds after which a stub that no agent has gives up its name. Two clients that take turns would otherwise take the
# name from each other each time.
LONG_IDLE = 600.0


def names_to_free(
    stubs: Sequence[Stub], chosen: Mapping[str, Stub], tools: Mapping[str, Tool], now: float
) -> dict[str, str]:
    """Returns the plain names that idle stubs hold, each with the digest of the new stub that wants it. `chosen` are
    the stubs by the names that they would have; those that are on the server keep these names.
    """
    plain = {stub.digest: stub.name for stub in stubs}
    wanting = {plain[stub.digest]: stub.digest for name, stub in chosen.items() if name not in tools}
    return {
        name: digest
        for name, digest in wanting.items()
        if name not in chosen and name in tools and _has_long_been_idle(tools[name], now)
    }


def _has_long_been_idle(tool: Tool, now: float) -> bool:
    """Whether a sweep found long ago that no agent has this stub. A turn that uses a stub removes the sweep's tag. A
    stub that is leaving is being deleted by somebody else.
    """
    since = idle_since(tool)
    return is_ours(tool) and not is_leaving(tool) and since is not None and now - since >= LONG_IDLE


def free_names(gateway: Gateway, tools: Sequence[Tool], pause: Callable[[float], None]) -> list[str]:
    """Deletes those of the stubs that still no agent has, and returns their names. After a failure no name is free: the
    turn goes on with another name.
    """
    try:
        return [tool.name for tool in delete_unused_stubs(gateway, tools, pause)]
    except LettaError as fault:
        log.warning("idle stubs keep their names: %s", fault.message)
        return []
