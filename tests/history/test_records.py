"""Records are read from texts that this or another version of the bridge wrote."""

from __future__ import annotations

import json

import pytest

from bridge.history.records import TurnRecord, record_from_text


@pytest.mark.parametrize(
    ("outcome", "failed"),
    [("answer", False), ("calls", False), ("nothing", False), ("running", False), ("letta_timeout", True)],
)
def test_a_record_of_an_earlier_version_counts_as_failed_only_if_its_turn_failed(outcome: str, failed: bool) -> None:
    text = json.dumps({"id": "t1", "started": 1_700_000_040.0, "model": "Ada", "outcome": outcome, "steps": []})
    assert record_from_text(TurnRecord, text).failed == failed
