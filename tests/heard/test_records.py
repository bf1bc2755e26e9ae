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


def test_turns_are_read_from_their_texts_once(tmp_path: Path) -> None:
    notes = HeardTurns(LocalStore(tmp_path / "shared.db"), "agent-1")
    turns = [HeardTurn("ended", told=(f"{number:016x}",), calls=("call_1",)) for number in range(5)]
    for turn in turns:
        notes.note(turn)
    first, again = [*notes.newest_first()], [*notes.newest_first()]
    assert first == again == turns[::-1]
    assert all(one is other for one, other in zip(first, again, strict=True))


def test_a_turn_with_a_long_text_is_not_kept_in_memory(tmp_path: Path) -> None:
    notes = HeardTurns(LocalStore(tmp_path / "shared.db"), "agent-1")
    notes.note(HeardTurn("ended", told=tuple(f"{number:016x}" for number in range(MOST_NOTED))))
    (one,), (other,) = notes.newest_first(), notes.newest_first()
    assert one == other
    assert one is not other
