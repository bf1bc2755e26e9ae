"""Under which name a stub stands on the server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bridge.errors import LettaRejected
from bridge.letta.gateway import Tool
from bridge.stubs.converter import renamed_stub
from bridge.stubs.naming import suffixed
from bridge.sync.ownership import stands_for
from bridge.turn import Stub


def alternative_names(stub: Stub) -> tuple[str, ...]:
    """The plain name, then some that tell it from others of that name: one may be taken, or about to leave."""
    return stub.name, *(suffixed(stub.name, stub.digest[start:]) for start in range(0, len(stub.digest), 8))


def first_free_name(stub: Stub, tools: Mapping[str, Tool], given: Collection[str] = ()) -> str:
    """The first of the stub's names that no other tool has; `given` are names that other stubs are about to take."""
    for name in alternative_names(stub):
        tool = tools.get(name)
        if name not in given and (tool is None or stands_for(tool, renamed_stub(stub, name))):
            return name
    raise LettaRejected(f"Every name for the tool {stub.spec.name!r:.160} is taken on the Letta server.")
