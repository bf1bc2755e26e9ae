"""The records of turns are written to the store, and no turn is disturbed by that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path

import pytest

from bridge.errors import StoreUnavailable
from bridge.history import activity as activity_module
from bridge.history.activity import Activity, Digests
from bridge.history.record_builder import RecordBuilder
from bridge.history.recorder import Recorder
from bridge.history.records import TurnRecord
from bridge.store.heartbeat import Heartbeat
from bridge.store.sqlite import LocalStore
from bridge.stubs.converter import make_stub
from bridge.turn import Binding, SchemaForm, Text, ToolCall, ToolsOffered, ToolSpec, TurnEvent
from tests.history.test_record_builder import CHAT, OFFERED, READ, TURN
from tests.waiting import until


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def activity(store: LocalStore) -> Activity:
    return Activity(store)


@pytest.fixture
def recorder(activity: Activity, store: LocalStore) -> Iterator[Recorder]:
    made = Recorder(activity, Heartbeat(store))
    yield made
    made.stop()


def begin(recorder: Recorder, events: Iterable[TurnEvent]) -> RecordBuilder:
    record = recorder.begin(TURN, CHAT)
    for event in events:
        record.add_event(event)
    return record


def run(recorder: Recorder, *events: TurnEvent) -> TurnRecord:
    """Returns the record of a turn with these events, which has ended."""
    return recorder.end(begin(recorder, events), None, gone=False)


def test_a_turn_that_ended_is_written_with_its_tools(recorder: Recorder, activity: Activity) -> None:
    done = run(recorder, OFFERED, ToolCall("c2", "fs/read", '{"path": "x"}'))
    recorder.flush()
    assert activity.newest_turns() == [done]
    assert activity.tool_uses()[READ.digest].calls == 1
    card = activity.tool_card(READ.digest)
    assert card is not None
    assert card.client_name == "fs/read"


def test_without_the_setting_no_text_is_written(activity: Activity, store: LocalStore) -> None:
    recorder = Recorder(activity, Heartbeat(store), keeps_text=False)
    run(recorder, OFFERED, ToolCall("c2", "fs/read", "secret"))
    recorder.stop()
    (call,) = activity.newest_calls_of_tool(READ.digest)
    assert (call.arguments, call.call_id) == ("", "c2")
    assert [turn.user_words for turn in activity.newest_turns()] == [""]


def test_a_turn_is_shown_while_it_runs(recorder: Recorder, activity: Activity) -> None:
    record = begin(recorder, [OFFERED])
    seen = until(activity.running_turns)
    assert [(turn.outcome, turn.model, [step.kind for step in turn.steps]) for turn in seen] == [
        ("running", "Ada", ["sync", "result"])
    ]
    assert seen[0].seconds > 0
    recorder.end(record, None, gone=False)
    recorder.flush()
    assert until(lambda: not activity.running_turns())
    assert activity.newest_turns()[0].outcome == "stop"


def test_the_list_of_running_turns_is_written_once_a_second_however_many_turns_end(
    recorder: Recorder, activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    show = activity.show_running
    monkeypatch.setattr(
        activity, "show_running", lambda worker, turns: (written.append(len(turns)), show(worker, turns))
    )
    running = begin(recorder, [OFFERED])
    until(lambda: written)
    for _ in range(5):
        run(recorder, Text("Hi"))
        recorder.flush()
    assert len(written) <= 2
    recorder.end(running, None, gone=False)
    until(lambda: written[-1] == 0)


def test_turns_that_ended_are_written_before_the_process_ends(recorder: Recorder, activity: Activity) -> None:
    run(recorder, Text("Hi"))
    recorder.stop()
    assert [turn.outcome for turn in activity.newest_turns()] == ["stop"]
    recorder.stop()
    assert not recorder.thread.is_running


def test_the_card_of_a_tool_in_use_is_not_forgotten(tmp_path: Path) -> None:
    now = [0.0]
    store = LocalStore(tmp_path / "store", clock=lambda: now[0])
    activity = Activity(store)
    recorder = Recorder(activity, Heartbeat(store), clock=lambda: now[0])
    for day in (0, 20, 35):
        now[0] = day * 86_400.0
        run(recorder, OFFERED)
        recorder.flush()
    recorder.stop()
    assert activity.tool_card(READ.digest) is not None


def test_a_forgotten_tool_has_its_card_again_when_it_is_offered_again(
    recorder: Recorder, activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_module, "MOST_TOOLS", 1)
    other = make_stub(ToolSpec("fs/write"), SchemaForm())
    for stub in (READ, other, READ):
        run(recorder, ToolsOffered("agent-1", "Ada", (Binding(stub, "tool-1"),), ()))
        recorder.flush()
    assert activity.tool_card(READ.digest) is not None
    assert activity.tool_card(other.digest) is None


def test_turns_are_written_after_one_that_could_not_be_written_for_a_reason_nobody_foresaw(store: LocalStore) -> None:
    class Fragile(Activity):
        fails = True

        def keep_ended_turns(self, turns: Sequence[tuple[TurnRecord, Digests]]) -> Set[str]:
            if self.fails:
                self.fails = False
                raise MemoryError("no memory")
            return super().keep_ended_turns(turns)

    activity = Fragile(store)
    recorder = Recorder(activity, Heartbeat(store))
    run(recorder, Text("Hi"))
    recorder.flush()
    assert not activity.fails
    assert activity.newest_turns() == []
    done = run(recorder, Text("Hi again"))
    recorder.flush()
    recorder.stop()
    assert activity.newest_turns() == [done]


def test_a_store_that_fails_fails_no_turn(store: LocalStore, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Activity):
        asked = 0

        def keep_ended_turns(self, *_: object) -> Set[str]:
            self.asked += 1
            raise StoreUnavailable("The disk is full.")

    activity = Broken(store)
    recorder = Recorder(activity, Heartbeat(store))
    assert run(recorder, Text("Hi")).outcome == "stop"
    recorder.flush()
    recorder.stop()
    assert "The disk is full." in caplog.text
    assert activity.asked == 1
