"""Computes the charts of the activity page, with a bar for each period. The templates draw them as SVG. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bridge.history.periods import Period

# In SVG units.
WIDTH, HEIGHT = 600.0, 96.0
# The part of a bar's place that is empty.
GAP = 0.25
# Ticks are not nearer to the edges than so many percent of the width: their labels would be cut.
EDGE = 3.0
_EACH = {60: "a minute", 3_600: "an hour"}


@dataclass(frozen=True, slots=True)
class BarPart:
    """A coloured rectangle within a bar. `kind` is the CSS class that gives the colour, such as "good" or "letta"."""

    x: float
    y: float
    width: float
    height: float
    kind: str


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of one period. `label` says in words what the bar shows."""

    label: str
    parts: tuple[BarPart, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the axis, at `place` percent of the chart's width."""

    place: float
    label: str

    @property
    def x(self) -> float:
        return round(WIDTH * self.place / 100, 2)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `top` and `middle` are the values at the upper edge and half as high, as text; `summary` says in words
    what the chart shows.
    """

    title: str
    top: str
    middle: str
    bars: tuple[Bar, ...]
    summary: str
    ticks: tuple[Tick, ...] = ()
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def is_empty(self) -> bool:
        return not any(bar.parts for bar in self.bars)


def turns_chart(periods: Sequence[Period], tick: int = 0) -> Chart:
    """Returns the chart of how many turns succeeded and failed in each period. A bar shows all turns.
    The axis has a tick every `tick` seconds; none if `tick` is 0.
    """
    turns = sum(period.turns for period in periods)
    failed = [sum(period.errors.values()) for period in periods]
    pairs = list(zip(periods, failed, strict=True))
    values = [{"good": float(period.turns - bad), "bad": float(bad)} for period, bad in pairs]
    labels = [f"{_time_of(period)}: {period.turns} turns, {bad} failed" for period, bad in pairs]
    length = periods[0].length if periods else 60
    summary = f"{turns} turns in {_length_in_words(length * len(periods))}, {sum(failed)} of them failed"
    title = f"Turns {_EACH.get(length) or f'in {_length_in_words(length)}'}"
    ticks = make_ticks(periods, tick)
    return _make_chart(title, values, labels, summary, lambda top: f"{top:g}" if turns else "", ticks)


def latency_chart(periods: Sequence[Period], tick: int = 0) -> Chart:
    """Returns the chart of the mean time of a turn in each period: in Letta, waiting, and in the bridge."""
    values = [
        {
            "letta": period.letta_seconds / (period.turns or 1),
            "wait": period.waited_seconds / (period.turns or 1),
            "bridge": period.bridge_seconds / (period.turns or 1),
        }
        for period in periods
    ]
    labels = [
        f"{_time_of(period)}: Letta {_seconds_text(value['letta'])},"
        f" waiting for the agent {_seconds_text(value['wait'])}, bridge {_seconds_text(value['bridge'])}"
        for period, value in zip(periods, values, strict=True)
    ]
    turns = sum(period.turns for period in periods) or 1
    letta = sum(period.letta_seconds for period in periods) / turns
    bridge = sum(period.bridge_seconds for period in periods) / turns
    summary = (
        f"On average Letta and its model take {_seconds_text(letta)} of a turn, the bridge {_seconds_text(bridge)}"
    )
    ticks = make_ticks(periods, tick)
    return _make_chart("Time of a turn", values, labels, summary, lambda top: _seconds_text(top) if top else "", ticks)


def make_ticks(periods: Sequence[Period], tick: int) -> tuple[Tick, ...]:
    """Returns the ticks at the periods that begin at a multiple of `tick` seconds, without those at the edges."""
    if not tick:
        return ()
    places = [(100 * number / len(periods), period.start) for number, period in enumerate(periods)]
    return tuple(
        Tick(round(place, 2), datetime.fromtimestamp(start, UTC).strftime("%H:%M" if tick < 86_400 else "%b %-d"))
        for place, start in places
        if start % tick == 0 and EDGE <= place <= 100 - EDGE
    )


def count_errors(periods: Sequence[Period]) -> list[tuple[str, int]]:
    """Returns the codes of all errors and how often each occurred, the most frequent first."""
    total: Counter[str] = Counter()
    for period in periods:
        total.update(period.errors)
    return total.most_common()


def _make_chart(
    title: str,
    values: Sequence[dict[str, float]],
    labels: Sequence[str],
    summary: str,
    as_text: Callable[[float], str],
    ticks: tuple[Tick, ...],
) -> Chart:
    """Returns a chart with a bar for each of `values`, which have an amount for each kind of part."""
    top = _round_up(max((sum(value.values()) for value in values), default=0.0))
    step = WIDTH / max(1, len(values))
    bars = [
        Bar(label, tuple(_stack_parts(value, place * step, step * (1 - GAP), top)))
        for place, (value, label) in enumerate(zip(values, labels, strict=True))
    ]
    return Chart(title, as_text(top), as_text(top / 2), tuple(bars), summary, ticks)


def _stack_parts(value: dict[str, float], x: float, width: float, top: float) -> list[BarPart]:
    """Returns the parts of a bar, stacked from the bottom up. `top` is the value of a full bar; 0 if all are empty."""
    parts, bottom = list[BarPart](), HEIGHT
    for kind, amount in value.items():
        height = HEIGHT * amount / top if top else 0.0
        if height > 0:
            height = max(height, 1.0)
            bottom -= height
            parts.append(BarPart(round(x, 2), round(bottom, 2), round(width, 2), round(height, 2), kind))
    return parts


def _round_up(value: float) -> float:
    """Returns the smallest number, not below `value`, that is 1, 2 or 5 times a power of ten. 0 if `value` is 0."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.999)


def _time_of(period: Period) -> str:
    form = "%H:%M UTC" if period.length < 3_600 else "%b %-d, %H:%M UTC"
    return datetime.fromtimestamp(period.start, UTC).strftime(form)


def _length_in_words(seconds: int) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds // 60} minutes"


def _seconds_text(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
