"""Draws the scenarios as bars in an SVG, one panel each with its own scale."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from bench.samples import SYSTEMS, Samples

WIDTH, BAR, GAP, TOP = 860, 18, 6, 44
PANEL_WIDTH, LABELS = WIDTH // 2, 70
COLOURS = dict(zip(SYSTEMS, ("#9aa5b1", "#5b8c5a", "#2563eb", "#d97706"), strict=True))


@dataclass(frozen=True, slots=True)
class Panel:
    title: str
    scenario: str
    measure: str


PANELS = (
    Panel("One client: time of a turn, ms (p50)", "one client", "p50 ms"),
    Panel("Ten clients: turns a second", "ten clients", "requests/s"),
    Panel("Ten clients: CPU of a turn, ms", "ten clients", "CPU ms a request"),
    Panel("50 streams: time to the first delta, ms (p50)", "50 streams", "first p50 ms"),
    Panel("50 streams: CPU of a delta, µs", "50 streams", "CPU µs a frame"),
    Panel("200 streams: delay of a delta, ms (p99)", "200 streams", "delay p99 ms"),
    Panel("Start to first answer, s", "start", "first answer s"),
    Panel("Memory, idle, MB", "memory", "idle MB"),
)


def svg(samples: Samples) -> str:
    height_of_panel = TOP + len(SYSTEMS) * (BAR + GAP)
    rows = (len(PANELS) + 1) // 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {rows * height_of_panel + 10}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{rows * height_of_panel + 10}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(PANELS):
        x, y = (number % 2) * PANEL_WIDTH, (number // 2) * height_of_panel
        parts += _panel(samples, panel, x, y)
    return "\n".join([*parts, "</svg>", ""])


def _panel(samples: Samples, panel: Panel, x: int, y: int) -> list[str]:
    figures = {system: samples.median_of(panel.scenario, panel.measure, system) for system in SYSTEMS}
    most = max((figure for figure in figures.values() if figure is not None), default=0) or 1
    parts = [f'<text x="{x + 12}" y="{y + 28}" font-weight="bold" fill="#111827">{escape(panel.title)}</text>']
    shown = [(system, figure) for system, figure in figures.items() if figure is not None]
    for place, (system, figure) in enumerate(shown):
        top = y + TOP + place * (BAR + GAP)
        length = max(1.0, figure / most * (PANEL_WIDTH - LABELS - 90))
        parts += [
            f'<text x="{x + LABELS}" y="{top + 13}" text-anchor="end" fill="#374151">{system}</text>',
            f'<rect x="{x + LABELS + 8}" y="{top}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[system]}"/>',
            f'<text x="{x + LABELS + 14 + length:.1f}" y="{top + 13}" fill="#374151">'
            f"{figure:,.{'3g' if figure < 100 else '0f'}}</text>",
        ]
    return parts
