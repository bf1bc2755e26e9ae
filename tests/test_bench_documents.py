"""The pages that `python -m bench --write` puts its figures into."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import documents
from bench.samples import BRIDGE, DIRECT, FLOOR, LITELLM, Samples
from bench.summary import LINES, summary


@pytest.fixture
def samples() -> Samples:
    made = Samples()
    for round_ in (4.0, 5.0, 9.0):
        made.add("one client", BRIDGE, {"p50 ms": round_})
    made.add("one client", DIRECT, {"p50 ms": 0.5})
    made.add("one client", FLOOR, {"p50 ms": 1.5})
    made.add("ten clients", BRIDGE, {"requests/s": 1273.4})
    made.add("ten clients", LITELLM, {"requests/s": 224.0})
    made.add("one client", LITELLM, {"another measure": 1.0})
    return made


def test_the_short_table_has_the_medians_in_words_and_leaves_out_what_was_not_measured(samples: Samples) -> None:
    assert summary(samples).splitlines() == [
        "|  | through the bridge | the least service | through LiteLLM | without any |",
        "| --- | --- | --- | --- | --- |",
        "| a turn, one after the other | 5 ms | 1.50 ms |  | 0.50 ms |",
        "| turns a second, ten clients at once | 1,273 |  | 224 |  |",
    ]


def test_the_figures_take_the_place_of_the_earlier_ones_and_the_words_around_them_stay() -> None:
    page = f"Before.\n\n{documents.BEGIN}\nold\n{documents.END}\n\nAfter.\n"
    once = documents.with_figures(page, "new\n")
    assert once == f"Before.\n\n{documents.BEGIN}\nnew\n{documents.END}\n\nAfter.\n"
    assert documents.with_figures(once, "new\n") == once


@pytest.mark.parametrize("page", ["", documents.BEGIN, documents.END, f"{documents.END}{documents.BEGIN}"])
def test_a_page_without_a_place_for_figures_is_left_as_it_is(page: str) -> None:
    with pytest.raises(ValueError, match="figures: begin"):
        documents.with_figures(page, "new\n")


def test_both_pages_get_their_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FOR_USERS", "FOR_THE_TEAM"):
        copy = tmp_path / f"{name}.md"
        copy.write_text(getattr(documents, name).read_text())
        monkeypatch.setattr(documents, name, copy)
    monkeypatch.setattr(documents, "PLOT", tmp_path / "plot.svg")
    documents.write("all of it\n", "the gist\n", "<svg/>")
    assert f"\n{documents.BEGIN}\nall of it\n{documents.END}\n" in documents.FOR_THE_TEAM.read_text()
    assert f"\n{documents.BEGIN}\nthe gist\n{documents.END}\n" in documents.FOR_USERS.read_text()
    assert documents.PLOT.read_text() == "<svg/>"


def test_every_line_of_the_short_table_is_a_line_of_the_whole_one() -> None:
    whole = {
        tuple(cell.strip() for cell in line.split("|")[1:3])
        for line in documents.FOR_THE_TEAM.read_text().splitlines()
        if line.startswith("| ")
    }
    assert {(line.scenario, line.measure) for line in LINES} <= whole


def test_goals_are_not_for_users() -> None:
    assert not re.search(r"\bgoals?\b", documents.FOR_USERS.read_text())
