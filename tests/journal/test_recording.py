"""The events of an attempt are in the store soon, each once, and with its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bridge.errors import StoreUnavailable
from bridge.journal import recording as module
from bridge.journal.batches import Assembly, End
from bridge.journal.recording import Recording, events_key
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import AgentEvent, Text, ToolCall
from tests.stores import FailingStore

WELL = End("well")
EVENTS: list[AgentEvent] = [Text("Hel"), Text("lo"), ToolCall("call_1", "read", "{}")]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


def of(store: Store, renewals: list[str] | None = None, keep: float = 60.0) -> Recording:
    renewed: list[str] = [] if renewals is None else renewals
    return Recording(store, "token-1", keep, lambda: renewed.append("renewed"), lambda: False, "no claim")


def kept(store: Store) -> tuple[list[AgentEvent], End | None]:
    """Returns the events and the end in the store."""
    assembly = Assembly()
    return assembly.add(store.items(events_key("token-1"))), assembly.end


def test_each_event_is_written_once(store: Store) -> None:
    recording = of(store)
    for count in (1, 1, 2):
        recording.flush(EVENTS[:count])
    assert kept(store) == (EVENTS[:2], None)
    assert len(store.items(events_key("token-1"))) == 2
    recording.end(EVENTS, WELL)
    recording.flush(EVENTS)
    assert kept(store) == (EVENTS, WELL)
    assert len(store.items(events_key("token-1"))) == 3


def test_events_that_the_store_lost_are_written_again_until_the_end(store: Store) -> None:
    lost = iter([False, True, False, True, True])
    recording = Recording(store, "token-1", 60.0, lambda: None, lambda: next(lost), "no claim")
    recording.flush(EVENTS[:1])
    store.remove(events_key("token-1"))
    for _ in range(2):
        recording.flush(EVENTS[:2])
    assert kept(store) == (EVENTS[:2], None)
    store.remove(events_key("token-1"))
    recording.end(EVENTS, WELL)
    assert kept(store) == (EVENTS, WELL)
    store.remove(events_key("token-1"))
    recording.flush(EVENTS)
    assert kept(store) == ([], None)


def test_a_claim_that_is_there_is_not_restored(store: Store) -> None:
    restored: list[str] = []
    recording = Recording(store, "token-1", 60.0, lambda: None, lambda: bool(restored.append("restored")), "claim")
    store.put("claim", "anybody's", 60.0)
    recording.flush(EVENTS[:1])
    recording.flush(EVENTS[:2])
    recording.end(EVENTS, WELL)
    assert kept(store) == (EVENTS, WELL)
    assert restored == []


def test_events_that_come_while_others_are_written_are_written_next(store: Store) -> None:
    events = EVENTS[:1]

    class Slow(FailingStore):
        """A store in whose first write another event comes."""

        def change(self, *write: Any, **conditions: Any) -> bool:
            events[1:] = EVENTS[1:2]
            return self._store.change(*write, **conditions)

    store.put("claim", "mine", 60.0)
    recording = Recording(Slow(store), "token-1", 60.0, lambda: None, lambda: False, "claim")
    recording.flush(events)
    recording.end(EVENTS, WELL)
    assert kept(store) == (EVENTS, WELL)


def test_a_write_that_failed_is_made_again(store: Store) -> None:
    failing = FailingStore(store, fault=StoreUnavailable("gone"))
    recording = of(failing)
    with pytest.raises(StoreUnavailable):
        recording.flush(EVENTS[:1])
    failing.fault = None
    recording.flush(EVENTS[:2])
    assert kept(store) == (EVENTS[:2], None)


def test_a_failing_store_does_not_fail_the_end(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    of(FailingStore(store, fault=StoreUnavailable("The disk is full."))).end(EVENTS, WELL)
    assert "The disk is full." in caplog.text


@pytest.mark.parametrize("event", [Text("12345"), ToolCall("call_1", "read", "12345")])
def test_too_large_an_answer_is_not_kept_but_its_end_is(
    store: Store, monkeypatch: pytest.MonkeyPatch, event: AgentEvent
) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 4)
    recording = of(store)
    recording.add_size_of(event)
    recording.flush([event])
    recording.end([event], WELL)
    assert kept(store) == ([], End("incomplete"))


def test_the_claim_is_renewed_before_it_expires(store: Store) -> None:
    renewals: list[str] = []
    recording = of(store, renewals)
    recording.flush(EVENTS)
    assert renewals == []
    recording._renewed -= 21.0
    recording.flush(EVENTS)
    recording.flush(EVENTS)
    assert renewals == ["renewed"]
