"""Turns leave a record, and never suffer from it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.errors import LettaTimeout, StoreUnavailable
from bridge.history import activity as activity_module
from bridge.history.activity import Activity
from bridge.history.recorder import Recorder
from bridge.history.records import TurnRecord
from bridge.store.sqlite import LocalStore
from bridge.stubs.converter import make_stub
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    Binding,
    MethodChosen,
    Reasoning,
    RunStarted,
    SchemaForm,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    ToolsOffered,
    ToolSpec,
    Turn,
    Used,
)
from tests.waiting import SOON, until

READ = make_stub(ToolSpec("fs/read", "Reads.", {"type": "object", "properties": {}}), SchemaForm())
TURN = Turn("Ada", (), stream=True)
GIVEN = ToolResult("c1", "the text", name="fs/read")
OFFERED = ToolsOffered("agent-1", "Ada", (Binding(READ, "tool-1"),), (GIVEN,))


@pytest.fixture
def activity(tmp_path: Path) -> Activity:
    return Activity(LocalStore(tmp_path / "store"))


@pytest.fixture
def recorder(activity: Activity) -> Iterator[Recorder]:
    made = Recorder(activity)
    yield made
    made.stop()


def record(recorder: Recorder, activity: Activity, *events: AgentEvent) -> TurnRecord:
    assert list(recorder.watch(TURN, events)) == [event for event in events if not isinstance(event, ToolsOffered)]
    recorder.flush()
    return activity.turns()[0]


def test_a_turn_becomes_a_timeline(recorder: Recorder, activity: Activity) -> None:
    done = record(
        recorder,
        activity,
        MethodChosen("native"),
        OFFERED,
        RunStarted("run-1"),
        Reasoning("Let me "),
        Reasoning("see."),
        AgentCall("m1", "own-1", "search", '{"q": 1}'),
        AgentReturn("m1", "own-1", "found", ok=False),
        Text("It is "),
        Text("here."),
        ToolCall("c2", "fs/read", '{"path": "x"}'),
        Used(100, 20),
        Stopped("requires_approval"),
    )
    assert [(step.kind, step.name, step.text, step.size, step.ok) for step in done.steps] == [
        ("sync", "", "", 1, True),
        ("result", "fs/read", "the text", 8, True),
        ("thought", "", "Let me see.", 11, True),
        ("own call", "search", '{"q": 1}', 8, True),
        ("own return", "", "found", 5, False),
        ("answer", "", "It is here.", 11, True),
        ("call", "fs/read", '{"path": "x"}', 13, True),
    ]
    assert (done.agent_id, done.agent_name, done.method, done.outcome) == ("agent-1", "Ada", "native", "calls")
    assert (done.prompt_tokens, done.completion_tokens, done.tools, done.streamed) == (100, 20, 1, True)
    assert [step.at for step in done.steps] == sorted(step.at for step in done.steps)
    assert activity.uses()[READ.digest].calls == 1
    card = activity.tool(READ.digest)
    assert card is not None
    assert (card.client_name, card.server_name, card.parameters) == ("fs/read", READ.name, READ.spec.parameters)
    assert card.changes == READ.changes


def test_a_call_held_for_the_client_is_told_once(recorder: Recorder, activity: Activity) -> None:
    held = AgentCall("m1", "x", READ.name, "{}", held=True)
    done = record(recorder, activity, OFFERED, held, ToolCall("c2", "fs/read", "{}"))
    assert [step.kind for step in done.steps] == ["sync", "result", "call"]


def test_a_failure_is_told_and_goes_on_to_whom_it_concerns(recorder: Recorder, activity: Activity) -> None:
    def failing() -> Iterator[AgentEvent]:
        yield Text("Half")
        raise LettaTimeout("It did not answer.")

    with pytest.raises(LettaTimeout):
        list(recorder.watch(TURN, failing()))
    recorder.flush()
    (done,) = activity.turns()
    assert (done.outcome, done.message, done.failed) == ("letta_timeout", "It did not answer.", True)
    assert done.steps[-1].kind == "failed"


def test_a_fault_of_the_bridge_is_told_without_its_words(recorder: Recorder, activity: Activity) -> None:
    def failing() -> Iterator[AgentEvent]:
        raise ZeroDivisionError("canary")
        yield Text("")

    with pytest.raises(ZeroDivisionError):
        list(recorder.watch(TURN, failing()))
    recorder.flush()
    (done,) = activity.turns()
    assert (done.outcome, done.message) == ("internal_error", "")


def test_a_turn_that_nobody_reads_to_its_end_is_broken_off(recorder: Recorder, activity: Activity) -> None:
    events = recorder.watch(TURN, iter([Text("a"), Text("b")]))
    next(events)
    events.close()  # type: ignore[attr-defined]
    recorder.flush()
    assert activity.turns()[0].outcome == "broken_off"


def test_by_setting_no_text_is_kept(activity: Activity) -> None:
    recorder = Recorder(activity, keeps_text=False)
    texts = (Reasoning("secret"), Reasoning("secret"), Text("secret"), ToolCall("c2", "fs/read", "secret"))
    done = record(recorder, activity, OFFERED, *texts)
    assert {step.text for step in done.steps} == {""}
    assert [step.size for step in done.steps] == [1, 8, 12, 6, 6]
    (call,) = activity.calls_of(READ.digest)
    assert (call.arguments, call.call_id) == ("", "c2")


def test_a_long_text_is_kept_by_its_beginning_and_size(recorder: Recorder, activity: Activity) -> None:
    done = record(recorder, activity, *(Text("0123456789") for _ in range(5000)))
    (step,) = done.steps
    assert (step.text, step.size) == ("0123456789" * 40, 50_000)


def test_costs_are_told(activity: Activity) -> None:
    @dataclass
    class Costs:
        letta_calls: int = 4
        letta_seconds: float = 0.25
        waited_seconds: float = 0.5

    done = record(Recorder(activity, Costs), activity, Text("Hi"))
    assert (done.letta_calls, done.letta_seconds, done.waited_seconds) == (4, 0.25, 0.5)


def test_a_turn_is_seen_while_it_runs(recorder: Recorder, activity: Activity) -> None:
    goes_on = threading.Event()

    def waiting() -> Iterator[AgentEvent]:
        yield OFFERED
        goes_on.wait(SOON)
        yield Text("Done")

    reading = threading.Thread(target=lambda: list(recorder.watch(TURN, waiting())))
    reading.start()
    seen = until(activity.running)
    assert [(turn.outcome, turn.agent_name, [step.kind for step in turn.steps]) for turn in seen] == [
        ("running", "Ada", ["sync", "result"])
    ]
    assert seen[0].seconds > 0
    goes_on.set()
    reading.join()
    recorder.flush()
    assert until(lambda: not activity.running())
    assert activity.turns()[0].outcome == "answer"


def test_a_worker_is_known_before_its_first_turn(recorder: Recorder, activity: Activity) -> None:
    recorder.start()
    (worker,) = until(activity.workers)
    assert worker.pid > 0
    assert worker.running == ()


def test_what_has_ended_is_written_before_the_process_ends(recorder: Recorder, activity: Activity) -> None:
    list(recorder.watch(TURN, [Text("Hi")]))
    recorder.stop()
    assert [turn.outcome for turn in activity.turns()] == ["answer"]
    recorder.stop()
    assert recorder._thread not in threading.enumerate()


def test_the_card_of_a_tool_in_use_is_not_forgotten(tmp_path: Path) -> None:
    now = [0.0]
    activity = Activity(LocalStore(tmp_path / "store", clock=lambda: now[0]))
    recorder = Recorder(activity, clock=lambda: now[0])
    for day in (0, 20, 35):
        now[0] = day * 86_400.0
        record(recorder, activity, OFFERED)
    recorder.stop()
    assert activity.tool(READ.digest) is not None


def test_a_tool_that_was_forgotten_has_its_card_again_when_it_is_offered_again(
    recorder: Recorder, activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_module, "MOST_TOOLS", 1)
    other = make_stub(ToolSpec("fs/write"), SchemaForm())
    for stub in (READ, other, READ):
        record(recorder, activity, ToolsOffered("agent-1", "Ada", (Binding(stub, "tool-1"),), ()))
    assert activity.tool(READ.digest) is not None
    assert activity.tool(other.digest) is None


def test_a_store_that_fails_costs_no_turn(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Activity):
        def __init__(self) -> None:
            self.asked = 0

        def lives(self, worker: object) -> None:
            self.asked += 1
            if self.asked <= 2:
                raise StoreUnavailable("The disk is full.")

        def ended(self, *_: object) -> Set[str]:
            self.lives(_)
            return frozenset()

    activity = Broken()
    recorder = Recorder(activity)
    assert list(recorder.watch(TURN, [Text("Hi")])) == [Text("Hi")]
    recorder.flush()
    recorder.stop()
    assert "The disk is full." in caplog.text
    assert activity.asked < 5
