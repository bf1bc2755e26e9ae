"""Chooses the name that a stub gets on the Letta server. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from bridge.errors import LettaRejected
from bridge.letta.gateway import Tool
from bridge.stubs.converter import rename_stub
from bridge.stubs.naming import append_digest
from bridge.sync.ownership import is_tool_of_stub
from bridge.turn import Stub


def possible_names(stub: Stub) -> tuple[str, ...]:
    """Returns a stub's plain name, then names with a part of its digest, in the order in which they are tried."""
    return tuple(_names_to_try(stub))


def _names_to_try(stub: Stub) -> Iterator[str]:
    yield stub.name
    for start in range(0, len(stub.digest), 8):
        yield append_digest(stub.name, stub.digest[start:])


def first_free_name(
    stub: Stub, tools: Mapping[str, Tool], given: Collection[str] = (), reserved: Collection[str] = ()
) -> str:
    """Returns the first possible name that no other tool has. `given` are names that other stubs of the same request
    will get, `reserved` those that stubs of other requests may get.
    """
    for name in _names_to_try(stub):
        tool = tools.get(name)
        is_free = name not in reserved if tool is None else is_tool_of_stub(tool, rename_stub(stub, name))
        if is_free and name not in given:
            return name
    raise LettaRejected(f"Every name for the tool {stub.spec.name!r:.160} is taken on the Letta server.")
