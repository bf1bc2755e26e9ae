"""Under which name a stub stands on the server. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bridge.errors import LettaRejected
from bridge.letta.gateway import Tool
from bridge.stubs.converter import name_with_suffix, renamed_stub
from bridge.sync.ownership import stands_for
from bridge.turn import Stub


def alternative_names(stub: Stub) -> tuple[str, ...]:
    """The plain name, one that tells it from others of that name, and one that nobody else would choose."""
    return stub.name, name_with_suffix(stub), f"tool_{stub.digest[:40]}"


def first_free_name(stub: Stub, tools: Mapping[str, Tool], given: Collection[str] = ()) -> str:
    """The first of the stub's names that no other tool has; `given` are names that other stubs are about to take."""
    for name in alternative_names(stub):
        tool = tools.get(name)
        if name not in given and (tool is None or stands_for(tool, renamed_stub(stub, name))):
            return name
    raise LettaRejected(f"Every name for the tool {stub.spec.name!r:.160} is taken on the Letta server.")
