"""The ranges of time that the operator can choose for charts and sums. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True)
class Range:
    """A range of time until now, as `count` bars of `length` seconds. The axis has a tick every `tick` seconds."""

    name: str
    label: str
    length: int
    count: int
    tick: int


RANGES = (
    Range("hour", "last hour", MINUTE, 60, 10 * MINUTE),
    Range("day", "last day", HOUR, 24, 4 * HOUR),
    Range("week", "last week", 3 * HOUR, 56, DAY),
    Range("month", "last 30 days", 12 * HOUR, 60, 5 * DAY),
)


def range_from_arguments(arguments: Mapping[str, str]) -> Range:
    """Returns the range that an address asks for; the last hour if it asks for none, or for one that does not exist."""
    return next((one for one in RANGES if one.name == arguments.get("range")), RANGES[0])
