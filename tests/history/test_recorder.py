"""Turns leave a record, and are not disturbed by it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from pathlib import Path

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.errors import LettaTimeout, StoreUnavailable
from bridge.history import activity as activity_module
from bridge.history.activity import Activity
from bridge.history.record_builder import RecordBuilder
from bridge.history.recorder import Recorder
from bridge.history.records import TurnRecord
from bridge.store.heartbeat import Heartbeat
from bridge.store.sqlite import LocalStore
from bridge.stubs.converter import make_stub
from bridge.trace import Trace, set_current
from bridge.turn import (
    AgentCall,
    AgentReturn,
    Binding,
    MethodChosen,
    NewInput,
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
    TurnEvent,
    Used,
    UserMessage,
)
from tests.waiting import until

READ = make_stub(ToolSpec("fs/read", "Reads.", {"type": "object", "properties": {}}), SchemaForm())
RETURNED = ToolResult("c1", "the text", name="fs/read")
TURN = Turn("Ada", NewInput((UserMessage("Hi"),), (RETURNED,)), stream=True, client="roo")
OFFERED = ToolsOffered("agent-1", "Ada", (Binding(READ, "tool-1"),), (RETURNED,))
CHAT = ChatCompletions(RequestRules())


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


@pytest.fixture
def trace() -> Iterator[Trace]:
    """The trace of the request that the test's thread works for."""
    made = Trace("request-1")
    made.set_agent("agent-1", "Ada", "letta_v1_agent")
    set_current(made)
    yield made
    set_current(None)


def begin(recorder: Recorder, events: Iterable[TurnEvent]) -> RecordBuilder:
    record = recorder.begin(TURN, CHAT)
    for event in events:
        record.see(event)
    return record


def run(recorder: Recorder, *events: TurnEvent, fault: BaseException | None = None, gone: bool = False) -> TurnRecord:
    """A turn from its begin to its end; its record."""
    return recorder.end(begin(recorder, events), fault, gone=gone)


@pytest.mark.usefixtures("trace")
def test_a_turn_becomes_a_timeline(recorder: Recorder, activity: Activity) -> None:
    done = run(
        recorder,
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
    assert (done.agent_id, done.agent_name, done.agent_type) == ("agent-1", "Ada", "letta_v1_agent")
    assert (done.method, done.outcome, done.ended, done.failed) == ("native", "tool_calls", True, False)
    assert (done.dialect, done.request_id, done.run_id, done.key_name) == (CHAT.name, "request-1", "run-1", "roo")
    assert (done.prompt_tokens, done.completion_tokens, done.tools, done.streamed) == (100, 20, 1, True)
    assert (done.results, done.called, done.own_calls, done.characters) == (1, 1, 1, 11)
    assert [step.at for step in done.steps] == sorted(step.at for step in done.steps)
    recorder.flush()
    assert activity.turns() == [done]
    assert activity.uses()[READ.digest].calls == 1
    card = activity.tool(READ.digest)
    assert card is not None
    assert (card.client_name, card.server_name, card.parameters) == ("fs/read", READ.name, READ.spec.parameters)
    assert card.changes == READ.changes


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([Text("Hi"), Stopped("end_turn")], "stop"),
        ([Text("Hi"), Stopped("max_steps")], "length"),
        ([ToolCall("c1", "read", "{}"), Stopped("max_steps")], "tool_calls"),
        ([], "stop"),
    ],
)
def test_the_outcome_is_the_finish_reason_that_the_client_saw(
    recorder: Recorder, events: list[TurnEvent], outcome: str
) -> None:
    assert run(recorder, *events).outcome == outcome


def test_a_client_that_left_is_the_outcome_whatever_the_turn_did(recorder: Recorder) -> None:
    assert run(recorder, Text("Hi"), gone=True).outcome == "client_gone"
    assert run(recorder, fault=LettaTimeout("late"), gone=True).outcome == "client_gone"


def test_a_call_that_is_held_for_the_client_is_one_step(recorder: Recorder) -> None:
    held = AgentCall("m1", "x", READ.name, "{}", held=True)
    done = run(recorder, OFFERED, held, ToolCall("c2", "fs/read", "{}"))
    assert [step.kind for step in done.steps] == ["sync", "result", "call"]


def test_a_failure_is_recorded_by_its_code(recorder: Recorder) -> None:
    done = run(recorder, Text("Half"), fault=LettaTimeout("It did not answer."))
    assert (done.outcome, done.message, done.failed, done.ended) == ("letta_timeout", "It did not answer.", True, False)
    assert done.steps[-1].kind == "failed"


def test_a_fault_of_the_bridge_is_recorded_without_its_words(recorder: Recorder) -> None:
    done = run(recorder, fault=ZeroDivisionError("canary"))
    assert (done.outcome, done.message) == ("internal_error", "")


def test_without_the_setting_no_text_is_kept(activity: Activity, store: LocalStore) -> None:
    recorder = Recorder(activity, Heartbeat(store), keeps_text=False)
    texts = (Reasoning("secret"), Reasoning("secret"), Text("secret"), ToolCall("c2", "fs/read", "secret"))
    done = run(recorder, OFFERED, *texts)
    recorder.stop()
    assert {step.text for step in done.steps} == {""}
    assert [step.size for step in done.steps] == [1, 8, 12, 6, 6]
    (call,) = activity.calls_of(READ.digest)
    assert (call.arguments, call.call_id) == ("", "c2")


def test_of_a_long_text_the_beginning_and_the_size_are_kept(recorder: Recorder) -> None:
    (step,) = run(recorder, *(Text("0123456789") for _ in range(5000))).steps
    assert (step.text, step.size) == ("0123456789" * 40, 50_000)


def test_calls_at_the_end_of_a_long_turn_are_not_cut(recorder: Recorder) -> None:
    steps: list[TurnEvent] = [AgentReturn("m", "c", "x") for _ in range(1000)]
    done = run(recorder, *steps, Text("And now:"), ToolCall("c2", "fs/read", "{}"))
    assert [step.name for step in done.calls] == ["fs/read"]
    assert len(done.steps) < 250


def test_the_costs_of_a_turn_are_those_of_its_request(recorder: Recorder, trace: Trace) -> None:
    for call in ("GET /v1/agents/{id}", "PUT /v1/tools/", "PUT /v1/tools/"):
        trace.count_call(call)
    done = run(recorder, Text("Hi"))
    assert (done.letta_calls, done.stubs_put) == (3, 2)
    assert done.seconds >= done.letta_seconds + done.waited_seconds


def test_a_turn_is_shown_while_it_runs(recorder: Recorder, activity: Activity, trace: Trace) -> None:
    record = begin(recorder, [OFFERED])
    seen = until(activity.running)
    assert [(turn.outcome, turn.agent_name, [step.kind for step in turn.steps]) for turn in seen] == [
        ("running", "Ada", ["sync", "result"])
    ]
    assert seen[0].seconds > 0
    recorder.end(record, None, gone=False)
    recorder.flush()
    assert until(lambda: not activity.running())
    assert activity.turns()[0].outcome == "stop"


def test_turns_that_ended_are_written_before_the_process_ends(recorder: Recorder, activity: Activity) -> None:
    run(recorder, Text("Hi"))
    recorder.stop()
    assert [turn.outcome for turn in activity.turns()] == ["stop"]
    recorder.stop()
    assert recorder._thread is not None
    assert not recorder._thread.is_alive()


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
    assert activity.tool(READ.digest) is not None


def test_a_forgotten_tool_has_its_card_again_when_it_is_offered_again(
    recorder: Recorder, activity: Activity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_module, "MOST_TOOLS", 1)
    other = make_stub(ToolSpec("fs/write"), SchemaForm())
    for stub in (READ, other, READ):
        run(recorder, ToolsOffered("agent-1", "Ada", (Binding(stub, "tool-1"),), ()))
        recorder.flush()
    assert activity.tool(READ.digest) is not None
    assert activity.tool(other.digest) is None


def test_a_store_that_fails_costs_no_turn(store: LocalStore, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Activity):
        asked = 0

        def ended(self, *_: object) -> Set[str]:
            self.asked += 1
            raise StoreUnavailable("The disk is full.")

    activity = Broken(store)
    recorder = Recorder(activity, Heartbeat(store))
    assert run(recorder, Text("Hi")).outcome == "stop"
    recorder.flush()
    recorder.stop()
    assert "The disk is full." in caplog.text
    assert activity.asked == 1
