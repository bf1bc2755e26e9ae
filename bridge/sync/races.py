"""Recognises errors of Letta that may be races: somebody else changed the same tool or agent at the same time."""

from __future__ import annotations

from bridge.errors import LettaConflict, LettaError, LettaNotFound


def may_be_a_race(fault: LettaError) -> bool:
    """Whether somebody else's change may be the cause. Letta answers 404, 409 or 500, depending on its version, to the
    id of a tool that was deleted; the general code stands for a 500.
    """
    return isinstance(fault, LettaConflict | LettaNotFound) or fault.code == LettaError.code
