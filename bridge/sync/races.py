"""Which failures of Letta may only mean that somebody else changed the same things at the same time."""

from __future__ import annotations

from bridge.errors import LettaConflict, LettaError, LettaNotFound


def may_be_a_race(fault: LettaError) -> bool:
    """Letta answers 404, 409 or 500, by version, when it is given a tool that is gone."""
    return isinstance(fault, LettaConflict | LettaNotFound) or fault.code == LettaError.code
