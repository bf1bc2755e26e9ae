"""Writes the table of all figures, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from bench.goals import GOALS, added
from bench.machine import BUSY
from bench.samples import BRIDGE, DIRECT, SYSTEMS, Samples

_HEAD = ("scenario", "measure", *SYSTEMS, "bridge to direct", "goal", "")


def table(samples: Samples) -> str:
    rows = [_row(samples, scenario, measure) for scenario, measure in samples.rows()]
    widths = [max(len(row[column]) for row in [_HEAD, *rows]) for column in range(len(_HEAD))]
    lines = [_line(_HEAD, widths), _line(["-" * width for width in widths], widths)]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)])


def load_of_others(samples: Samples) -> str:
    """Says how much of the machine other processes used."""
    if not samples.busy:
        return "Nothing was measured."
    middle, most = median(samples.busy), max(samples.busy)
    text = f"While the scenarios ran, other processes used {middle:.0%} of the machine (median), {most:.0%} at most."
    if middle <= BUSY:
        return text
    return f"{text} **The machine was too busy for reliable times**; counts and ratios of CPU are reliable."


def _row(samples: Samples, scenario: str, measure: str) -> tuple[str, ...]:
    cells = [_cell(samples.figures(scenario, measure, system)) for system in SYSTEMS]
    goals = [goal for goal in GOALS if (goal.scenario, goal.measure) == (scenario, measure)]
    reached = [goal.reached(samples) for goal in goals]
    words = ", ".join(goal.words for goal, one in zip(goals, reached, strict=True) if one is not None)
    verdict = ", ".join("met" if one[1] else f"**short: {number(one[0])}**" for one in reached if one is not None)
    return scenario, measure, *cells, _to_direct(samples, scenario, measure), words, verdict


def _to_direct(samples: Samples, scenario: str, measure: str) -> str:
    ours, theirs = samples.median_of(scenario, measure, BRIDGE), samples.median_of(scenario, measure, DIRECT)
    more = added(samples, scenario, measure)
    if ours is None or theirs is None or more is None:
        return ""
    if measure.endswith("ms"):
        return f"{_signed(more)} ms"
    return f"x {number(ours / theirs)}" if theirs else ""


def _cell(figures: Sequence[float]) -> str:
    """Shows the median, and the least and the most of the rounds."""
    if not figures:
        return ""
    middle, least, most = number(median(figures)), number(min(figures)), number(max(figures))
    return middle if least == most else f"{middle} ({least} to {most})"


def number(figure: float) -> str:
    """Returns the figure with three digits or more."""
    if figure == round(figure) or abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.2f}" if abs(figure) < 10 else f"{figure:.1f}"


def _signed(figure: float) -> str:
    return f"{'+' if figure >= 0 else '-'}{number(abs(figure))}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
