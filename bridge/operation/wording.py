"""Numbers and names in sentences for the operator."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 12


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and how many more there are."""
    shown = ", ".join(f"{name:.60}" for name in names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def in_brackets(names: Sequence[str]) -> str:
    return f" ({listed(names)})" if names else ""
