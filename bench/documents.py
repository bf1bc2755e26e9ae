"""Puts the figures into the pages: the whole table for the team, a short one for users, and the plot."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
FOR_USERS = ROOT / "docs" / "performance.md"
FOR_THE_TEAM = ROOT / "bench" / "README.md"
PLOT = FOR_USERS.with_suffix(".svg")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def write(report: str, summary: str, picture: str) -> None:
    for page, figures in ((FOR_THE_TEAM, report), (FOR_USERS, summary)):
        page.write_text(with_figures(page.read_text(), figures))
    PLOT.write_text(picture)


def with_figures(page: str, figures: str) -> str:
    """Returns the page with these figures between its two comments."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no {BEGIN} with {END} after it")
    return f"{before}{BEGIN}\n{figures}{END}{after}"
