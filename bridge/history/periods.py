"""Counts turns by periods of time: how many, how long, with which errors, and by which client's key. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any

from bridge.history.records import TurnRecord

# Durations are counted in classes, of which so many double the duration. A percentile is wrong by at most 4.4 percent.
CLASSES_TO_DOUBLE = 8
SHORTEST = 0.001
MINUTE, HOUR = 60, 3_600

Histogram = Mapping[str, int]
# The parts of a turn whose durations are counted.
PARTS = ("seconds", "letta_seconds", "bridge_seconds")


@dataclass(frozen=True, slots=True)
class Usage:
    """What the turns of one key cost. `errors` counts turns that failed. Tokens are those that Letta reports."""

    turns: int = 0
    errors: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.turns + other.turns,
            self.errors + other.errors,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Period:
    """Counts and sums of the turns that ended in the `length` seconds from the Unix time `start` on. `errors` are by
    their code, `usage` by the key's name. `histograms` has for each of PARTS the number of turns by class of duration.
    """

    start: int
    length: int = MINUTE
    turns: int = 0
    seconds: float = 0.0
    letta_seconds: float = 0.0
    waited_seconds: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)

    @property
    def bridge_seconds(self) -> float:
        return max(0.0, self.seconds - self.letta_seconds - self.waited_seconds)


def period_with(before: Period, turns: Iterable[TurnRecord]) -> Period:
    """Returns the period with these turns added."""
    return joined([before, *(_period_of_turn(turn) for turn in turns)], before.start, before.length)


def _period_of_turn(turn: TurnRecord) -> Period:
    used = Usage(1, int(turn.failed), turn.prompt_tokens or 0, turn.completion_tokens or 0)
    return Period(
        0,
        turns=1,
        seconds=turn.seconds,
        letta_seconds=turn.letta_seconds,
        waited_seconds=turn.waited_seconds,
        errors={turn.outcome: 1} if turn.failed else {},
        usage={turn.key_name: used},
        histograms={part: {_class_of(getattr(turn, part)): 1} for part in PARTS},
    )


def joined(periods: Sequence[Period], start: int, length: int) -> Period:
    """Returns one period with the turns of all these."""
    histograms = {part: _sum(period.histograms.get(part, {}) for period in periods) for part in PARTS}
    return Period(
        start,
        length,
        turns=sum(period.turns for period in periods),
        seconds=sum(period.seconds for period in periods),
        letta_seconds=sum(period.letta_seconds for period in periods),
        waited_seconds=sum(period.waited_seconds for period in periods),
        errors=_sum(period.errors for period in periods),
        usage=usage_by_key(periods),
        histograms={part: histogram for part, histogram in histograms.items() if histogram},
    )


def usage_by_key(periods: Iterable[Period]) -> dict[str, Usage]:
    total: dict[str, Usage] = {}
    for period in periods:
        for name, used in period.usage.items():
            total[name] = total.get(name, Usage()).plus(used)
    return total


def percentile(histogram: Histogram, percent: float) -> float | None:
    """Returns the duration in seconds that so many percent of the turns do not exceed; None without turns."""
    wanted = math.ceil(sum(histogram.values()) * percent / 100)
    seen = 0
    for number in sorted(map(int, histogram)):
        seen += histogram[str(number)]
        if seen >= wanted:
            return SHORTEST * 2 ** ((number + 0.5) / CLASSES_TO_DOUBLE) if number >= 0 else 0.0
    return None


def _class_of(seconds: float) -> str:
    """Returns the number of the duration's class, as text because JSON has no other keys. -1 is below SHORTEST."""
    if seconds < SHORTEST:
        return "-1"
    return str(math.floor(CLASSES_TO_DOUBLE * math.log2(seconds / SHORTEST)))


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


# --- in the store -----------------------------------------------------------------------------------------


def period_to_row(period: Period) -> dict[str, Any]:
    """Returns the JSON object that the store keeps. `usage` has a short list for each key instead of an object."""
    row = {one.name: getattr(period, one.name) for one in fields(Period) if one.name not in ("start", "length")}
    return {**row, "usage": {name: list(astuple(used)) for name, used in period.usage.items()}}


def period_from_row(row: Mapping[str, Any], start: int, length: int) -> Period:
    """Returns the period of the store's JSON object, an empty one of {}. Ignores unknown fields."""
    known = {one.name for one in fields(Period)} - {"start", "length", "usage"}
    usage = {name: Usage(*numbers[: len(fields(Usage))]) for name, numbers in row.get("usage", {}).items()}
    return Period(start, length, usage=usage, **{name: value for name, value in row.items() if name in known})
