"""Writes numbers and names into sentences for the operator."""

from __future__ import annotations

from collections.abc import Sequence

NAMED = 12


def number_with_noun(number: int, noun: str) -> str:
    """Returns the number with the noun, which gets an "s" unless the number is 1: "1 tool", "2 tools"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def list_names(names: Sequence[str]) -> str:
    """Returns the first NAMED names with commas between, then the number of further names: "a, b and 3 more"."""
    shown = ", ".join(f"{name:.60}" for name in names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def names_in_brackets(names: Sequence[str]) -> str:
    """Returns the names as an addition to a sentence: " (a, b)". "" if there are no names."""
    return f" ({list_names(names)})" if names else ""
