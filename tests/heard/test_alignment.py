from __future__ import annotations

from collections.abc import Iterator

from bridge.heard.alignment import Alignment
from bridge.heard.records import HeardTurn
from bridge.turn import PLAIN_CALL_IDS, Message


def test_a_conversation_that_begins_reads_no_notes() -> None:
    reads = []

    def turns() -> Iterator[HeardTurn]:
        reads.append("turns")
        yield HeardTurn("ended")

    def history(name: str) -> list[str]:
        reads.append(name)
        return []

    Alignment([], [Message("user", "Hello")], PLAIN_CALL_IDS).match_turns(turns(), history)
    assert reads == []
    Alignment([Message("assistant", "Hi")], [Message("user", "Hello")], PLAIN_CALL_IDS).match_turns(turns(), history)
    assert reads[0] == "turns"
