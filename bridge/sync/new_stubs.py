"""Collects the stubs that one turn makes on the Letta server."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.turn import Binding


@dataclass(frozen=True, slots=True)
class NewStubs:
    """The stubs that a turn made for the client with the key `key_name`, "" without keys. Stubs that were on the server
    before, or that another turn made, are not among them.
    """

    key_name: str = ""
    bindings: list[Binding] = field(default_factory=list)
