"""Turns are counted by periods of time, and percentiles are read from the counts."""

from __future__ import annotations

import json
import random

import pytest

from bridge.history.periods import (
    HOUR,
    Period,
    Usage,
    joined,
    percentile,
    period_from_row,
    period_to_row,
    period_with,
    usage_by_key,
)
from bridge.history.records import TurnRecord


def turn(seconds: float = 1.0, key: str = "roo", outcome: str = "stop", **more: float) -> TurnRecord:
    return TurnRecord(
        "t", 0.0, "Ada", key_name=key, outcome=outcome, ended=outcome == "stop", seconds=seconds,
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize("percent", [50, 95, 99])
def test_a_percentile_is_wrong_by_less_than_five_percent(percent: int) -> None:
    dice = random.Random(percent)
    durations = sorted(dice.lognormvariate(0, 1.5) for _ in range(2_000))
    found = percentile(period_with(Period(0), map(turn, durations)).histograms["seconds"], percent)
    assert found == pytest.approx(durations[2_000 * percent // 100 - 1], rel=0.045)


def test_percentiles_of_few_turns_are_those_of_single_turns() -> None:
    histogram = period_with(Period(0), [turn(0.1), turn(9.0)]).histograms["seconds"]
    assert percentile(histogram, 50) == pytest.approx(0.1, rel=0.045)
    assert percentile(histogram, 99) == pytest.approx(9.0, rel=0.045)
    assert percentile({}, 50) is None
    assert percentile(period_with(Period(0), [turn(0.0)]).histograms["seconds"], 99) == 0.0


def test_the_parts_of_a_turn_have_percentiles_of_their_own() -> None:
    histograms = period_with(Period(0), [turn(4.0, letta_seconds=2.0, waited_seconds=1.0)]).histograms
    found = {part: percentile(histogram, 50) for part, histogram in histograms.items()}
    assert found == {
        "seconds": pytest.approx(4.0, rel=0.045),
        "letta_seconds": pytest.approx(2.0, rel=0.045),
        "bridge_seconds": pytest.approx(1.0, rel=0.045),
    }


def test_usage_is_counted_by_key() -> None:
    turns = [
        turn(prompt_tokens=100, completion_tokens=10),
        turn(outcome="busy"),
        turn(key="phone", prompt_tokens=7),
    ]
    period = period_with(Period(0), turns)
    assert period.usage == {"roo": Usage(2, 1, 100, 10), "phone": Usage(1, 0, 7, 0)}
    assert usage_by_key([period, period])["roo"] == Usage(4, 2, 200, 20)
    assert period.usage["roo"].tokens == 110


def test_a_period_is_read_as_it_was_written() -> None:
    period = period_with(Period(HOUR, HOUR), [turn(2.0, letta_seconds=1.5), turn(outcome="busy", key="ключ")])
    row = json.loads(json.dumps({**period_to_row(period), "flavour": "new"}))
    assert period_from_row(row, HOUR, HOUR) == period
    assert period_from_row({}, HOUR, HOUR) == Period(HOUR, HOUR)


def test_joined_periods_have_the_turns_of_all() -> None:
    first, second = period_with(Period(0), [turn(1.0)]), period_with(Period(60), [turn(outcome="busy"), turn(3.0)])
    whole = joined([first, second], 0, HOUR)
    assert whole == period_with(Period(0, HOUR), [turn(1.0), turn(outcome="busy"), turn(3.0)])
    assert (whole.turns, whole.errors, whole.seconds) == (3, {"busy": 1}, 5.0)
