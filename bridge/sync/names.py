"""Chooses the name that a stub gets on the Letta server. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from bridge.errors import LettaRejected
from bridge.letta.gateway import Tool
from bridge.stubs.converter import rename_stub
from bridge.stubs.naming import append_digest
from bridge.sync.ownership import is_tool_of_stub
from bridge.turn import Stub


def possible_names(stub: Stub) -> tuple[str, ...]:
    """Returns the names that a stub may have on the server: its plain name, then names with a part of its digest.

    The names are tried in this order, because another tool or a stub that is about to be deleted may have a name.
    """
    return stub.name, *(append_digest(stub.name, stub.digest[start:]) for start in range(0, len(stub.digest), 8))


def first_free_name(stub: Stub, tools: Mapping[str, Tool], given: Collection[str] = ()) -> str:
    """Returns the first of a stub's possible names that no tool has, or only the tool of this stub itself.

    `tools` are the tools on the server by name. `given` are names that other stubs will get. Raises LettaRejected if
    every possible name is taken.
    """
    for name in possible_names(stub):
        tool = tools.get(name)
        if name not in given and (tool is None or is_tool_of_stub(tool, rename_stub(stub, name))):
            return name
    raise LettaRejected(f"Every name for the tool {stub.spec.name!r:.160} is taken on the Letta server.")
