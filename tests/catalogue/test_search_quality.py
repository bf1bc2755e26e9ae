"""The search finds the right tool among 2,000, for questions that were not used to make it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from bridge.catalogue.catalogue import Catalogue
from bridge.turn import ToolSpec

CASES = Path(__file__).parent.parent / "cases" / "tool_search"
# Nobody may look at the questions of this half and then change the ranking, so a failure does not show them.
KEPT_HALF = "kept"
FIRST = 5
LEAST_SHARE = 0.9
MOST_SHOWN = 20

Question = dict[str, Any]


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_catalogue() -> Catalogue:
    rows = read_rows(CASES / "tools.jsonl")
    return Catalogue([ToolSpec(row["name"], row.get("description", ""), row.get("parameters")) for row in rows])


def read_halves() -> dict[str, list[Question]]:
    halves: defaultdict[str, list[Question]] = defaultdict(list)
    for row in read_rows(CASES / "questions.jsonl"):
        halves[row["half"]].append(row)
    return dict(halves)


def is_found(catalogue: Catalogue, question: Question) -> bool:
    """Returns whether one of the right tools is among the first that the search gives."""
    found = catalogue.search(question["question"])[:FIRST]
    return any(spec.name in question["tools"] for spec in found)


def describe_result(half: str, share: float, not_found: list[Question]) -> str:
    shown = [question["question"] for question in not_found[:MOST_SHOWN]] if half != KEPT_HALF else "not shown"
    return f"half {half!r}: {share:.1%} found among the first {FIRST}; not found: {shown}"


def test_nine_of_ten_questions_of_each_half_find_their_tool() -> None:
    catalogue, halves = read_catalogue(), read_halves()
    assert len(halves) == 2
    too_few = []
    for half, questions in halves.items():
        not_found = [question for question in questions if not is_found(catalogue, question)]
        share = 1 - len(not_found) / len(questions)
        if share < LEAST_SHARE:
            too_few.append(describe_result(half, share, not_found))
    if too_few:
        pytest.fail("\n".join(too_few), pytrace=False)
