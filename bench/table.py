"""The one table, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.goals import GOALS, added
from bench.machine import BUSY
from bench.samples import BRIDGE, DIRECT, LEGS, Samples

_HEAD = ("lane", "measure", *LEGS, "bridge to direct", "goal", "")


def table(samples: Samples) -> str:
    rows = [_row(samples, lane, measure) for lane, measure in samples.rows()]
    widths = [max(len(row[column]) for row in [_HEAD, *rows]) for column in range(len(_HEAD))]
    lines = [_line(_HEAD, widths), _line(["-" * width for width in widths], widths)]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def trust(samples: Samples) -> str:
    """Whether somebody else was at work on the machine."""
    if not samples.busy:
        return "Nothing was measured."
    middle, most = median(samples.busy), max(samples.busy)
    told = f"While the lanes ran, others used {middle:.0%} of the machine (median), {most:.0%} at most."
    if middle <= BUSY:
        return told
    return f"{told} **It was too busy to trust the times**; counts, and CPU as a ratio, stand."


def _row(samples: Samples, lane: str, measure: str) -> tuple[str, ...]:
    cells = [_cell(samples.of(lane, measure, leg)) for leg in LEGS]
    goals = [goal for goal in GOALS if (goal.lane, goal.measure) == (lane, measure)]
    reached = [goal.reached(samples) for goal in goals]
    words = ", ".join(goal.words for goal, one in zip(goals, reached, strict=True) if one is not None)
    said = ", ".join("met" if one[1] else f"**short: {_number(one[0])}**" for one in reached if one is not None)
    return lane, measure, *cells, _to_direct(samples, lane, measure), words, said


def _to_direct(samples: Samples, lane: str, measure: str) -> str:
    ours, theirs = samples.middle(lane, measure, BRIDGE), samples.middle(lane, measure, DIRECT)
    more = added(samples, lane, measure)
    if ours is None or theirs is None or more is None:
        return ""
    if measure.endswith("ms"):
        return f"{_signed(more)} ms"
    return f"x {_number(ours / theirs)}" if theirs else ""


def _cell(figures: Sequence[float]) -> str:
    """The median, and the spread of the rounds."""
    if not figures:
        return ""
    middle, least, most = _number(median(figures)), _number(min(figures)), _number(max(figures))
    return middle if least == most else f"{middle} ({least} to {most})"


def _number(figure: float) -> str:
    if figure == round(figure) or abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.2f}" if abs(figure) < 10 else f"{figure:.1f}"


def _signed(figure: float) -> str:
    return f"{'+' if figure >= 0 else '-'}{_number(abs(figure))}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
