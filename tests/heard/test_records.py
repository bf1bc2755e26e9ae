from __future__ import annotations

from pathlib import Path

from bridge.fingerprints import LONGEST_ID
from bridge.heard.records import MOST_NOTED, HeardTurn, HeardTurns
from bridge.store.sqlite import LocalStore


def test_of_a_turn_with_very_many_messages_the_newest_are_noted(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "shared.db")
    notes = HeardTurns(store, "agent-1")
    digests = tuple(f"{number:016x}" for number in range(10_000))
    notes.note(HeardTurn("ended", told=digests, results=digests, calls=(*digests, "x" * (LONGEST_ID + 1)), history="h"))
    (text,) = store.items("heard:agent-1")
    assert len(text) < 3 * 22 * MOST_NOTED
    (noted,) = notes.newest_first()
    newest = digests[-MOST_NOTED:]
    assert noted == HeardTurn("ended", told=newest, results=newest, calls=newest, history="h")
