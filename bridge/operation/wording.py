"""Writes numbers and names into sentences for the operator."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 12


def number_with_noun(number: int, noun: str) -> str:
    """Returns "1 tool", "2 tools"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def list_names(names: Sequence[str]) -> str:
    """Returns "a, b and 3 more" if there are more than NAMED names."""
    shown = ", ".join(f"{name:.60}" for name in names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def names_in_brackets(names: Sequence[str]) -> str:
    """Returns " (a, b)"; "" if there are no names."""
    return f" ({list_names(names)})" if names else ""
