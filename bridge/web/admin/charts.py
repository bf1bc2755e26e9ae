"""Computes the charts of the activity page, with a bar for each minute. The templates draw them as SVG. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bridge.history.records import Minute

# In SVG units.
WIDTH, HEIGHT = 600.0, 96.0
# The part of a bar's place that is empty.
GAP = 0.25


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
    """The bar of one minute. `label` says in words what the bar shows."""

    label: str
    parts: tuple[BarPart, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `top` is the value at the upper edge, as text; `summary` says in words what the chart shows."""

    title: str
    top: str
    bars: tuple[Bar, ...]
    summary: str
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def is_empty(self) -> bool:
        return not any(bar.parts for bar in self.bars)


def turns_chart(minutes: Sequence[Minute]) -> Chart:
    """Returns the chart of how many turns succeeded and failed in each minute. A bar shows all turns."""
    turns = sum(minute.turns for minute in minutes)
    failed = [sum(minute.errors.values()) for minute in minutes]
    pairs = list(zip(minutes, failed, strict=True))
    values = [{"good": float(minute.turns - bad), "bad": float(bad)} for minute, bad in pairs]
    labels = [f"{_clock_time(minute)}: {minute.turns} turns, {bad} failed" for minute, bad in pairs]
    summary = f"{turns} turns in {len(minutes)} minutes, {sum(failed)} of them failed"
    return _make_chart("Turns a minute", values, labels, summary, lambda top: f"{top:g}" if turns else "")


def latency_chart(minutes: Sequence[Minute]) -> Chart:
    """Returns the chart of the mean time of a turn in each minute: in Letta, waiting, and in the bridge."""
    values = [
        {
            "letta": minute.letta_seconds / (minute.turns or 1),
            "wait": minute.waited_seconds / (minute.turns or 1),
            "bridge": minute.bridge_seconds / (minute.turns or 1),
        }
        for minute in minutes
    ]
    labels = [
        f"{_clock_time(minute)}: Letta {_seconds_text(value['letta'])},"
        f" waiting for the agent {_seconds_text(value['wait'])}, bridge {_seconds_text(value['bridge'])}"
        for minute, value in zip(minutes, values, strict=True)
    ]
    turns = sum(minute.turns for minute in minutes) or 1
    letta = sum(minute.letta_seconds for minute in minutes) / turns
    bridge = sum(minute.bridge_seconds for minute in minutes) / turns
    summary = (
        f"On average Letta and its model take {_seconds_text(letta)} of a turn, the bridge {_seconds_text(bridge)}"
    )
    return _make_chart("Time of a turn", values, labels, summary, lambda top: _seconds_text(top) if top else "")


def count_errors(minutes: Sequence[Minute]) -> list[tuple[str, int]]:
    """Returns the codes of all errors and how often each occurred, the most frequent first."""
    total: Counter[str] = Counter()
    for minute in minutes:
        total.update(minute.errors)
    return total.most_common()


def _make_chart(
    title: str,
    values: Sequence[dict[str, float]],
    labels: Sequence[str],
    summary: str,
    as_text: Callable[[float], str],
) -> Chart:
    """Returns a chart with a bar for each of `values`, which have an amount for each kind of part."""
    top = _round_up(max((sum(value.values()) for value in values), default=0.0))
    step = WIDTH / max(1, len(values))
    bars = [
        Bar(label, tuple(_stack_parts(value, place * step, step * (1 - GAP), top)))
        for place, (value, label) in enumerate(zip(values, labels, strict=True))
    ]
    return Chart(title, as_text(top), tuple(bars), summary)


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


def _clock_time(minute: Minute) -> str:
    return datetime.fromtimestamp(minute.start, UTC).strftime("%H:%M UTC")


def _seconds_text(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
