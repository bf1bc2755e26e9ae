"""Recognises errors of Letta that may be races: somebody else changed the same tool or agent at the same time."""

from __future__ import annotations

from bridge.errors import LettaConflict, LettaError, LettaNotFound


def may_be_a_race(fault: LettaError) -> bool:
    """Whether an error may come from a change by somebody else at the same time.

    Letta answers 404, 409 or 500, depending on its version, to the id of a tool that was deleted. So a LettaError with
    the general code, which stands for a 500, also counts.
    """
    return isinstance(fault, LettaConflict | LettaNotFound) or fault.code == LettaError.code
