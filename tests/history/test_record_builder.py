"""A turn's events become its record."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from bridge.dialects.base import RequestRules
from bridge.dialects.chat_completions.dialect import ChatCompletions
from bridge.errors import LettaTimeout
from bridge.history.record_builder import BRIEF, MOST_CALLS, MOST_STEPS, WORDS, RecordBuilder
from bridge.history.records import TurnRecord
from bridge.stubs.converter import make_stub
from bridge.trace import Trace
from bridge.turn import (
    AgentCall,
    AgentReturn,
    Binding,
    EndingResults,
    FormatChecked,
    MethodChosen,
    NewInput,
    Notice,
    OriginalReply,
    Reasoning,
    RunStarted,
    SchemaForm,
    Stopped,
    Text,
    ToolCall,
    ToolResult,
    ToolsLookedUp,
    ToolsOffered,
    ToolSpec,
    Turn,
    TurnEvent,
    Used,
    UserMessage,
)

NOON = 1_700_000_040.0
READ = make_stub(ToolSpec("fs/read", "Reads.", {"type": "object", "properties": {}}), SchemaForm())
RETURNED = ToolResult("c1", "the text", name="fs/read")
TURN = Turn("Ada", NewInput((UserMessage("Hi"),), (RETURNED,)), stream=True, client="roo")
OFFERED = ToolsOffered("agent-1", "Ada", (Binding(READ, "tool-1"),), (RETURNED,))
CHAT = ChatCompletions(RequestRules())


@pytest.fixture
def trace() -> Trace:
    made = Trace("request-1")
    made.set_agent("agent-1", "Ada", "letta_v1_agent")
    return made


def builder(
    *events: TurnEvent, turn: Turn = TURN, trace: Trace | None = None, keeps_text: bool = True
) -> RecordBuilder:
    """Returns the builder of a turn in which these events have happened."""
    made = RecordBuilder(turn, trace or Trace(), NOON, CHAT, keeps_text=keeps_text)
    for event in events:
        made.add_event(event)
    return made


def record(*events: TurnEvent, fault: BaseException | None = None, gone: bool = False, **more: Any) -> TurnRecord:
    """Returns the record of a turn with these events, which has ended."""
    return builder(*events, **more).end(fault, gone=gone)


def test_a_turn_becomes_a_timeline(trace: Trace) -> None:
    done = record(
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
        trace=trace,
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


def test_a_turn_has_the_beginning_of_the_users_newest_message() -> None:
    messages = (UserMessage("Before"), UserMessage(" " + "words " * 100), UserMessage("Rules", role="system"))
    asked = Turn("Ada", NewInput(messages))
    assert record(turn=asked).user_words == ("words " * 100)[:WORDS]
    assert record(turn=Turn("Ada", NewInput((), (RETURNED,)))).user_words == ""
    assert record(turn=asked, keeps_text=False).user_words == ""


@pytest.mark.parametrize("keeps_text", [True, False])
def test_a_result_that_reads_like_an_error_is_marked_but_is_no_error(keeps_text: bool) -> None:
    results = (ToolResult("c1", "ENOENT: no such file"), ToolResult("c2", "Error: x", is_error=True), RETURNED)
    done = record(replace(OFFERED, results=results), keeps_text=keeps_text)
    assert [(step.ok, step.looks_wrong) for step in done.returned] == [(True, True), (False, False), (True, False)]


@pytest.mark.parametrize("keeps_text", [True, False])
def test_a_notice_is_a_step_with_its_words_also_without_the_texts_of_conversations(keeps_text: bool) -> None:
    done = record(Notice("waiting for another turn"), Text("Hi"), keeps_text=keeps_text)
    assert [(step.kind, step.name) for step in done.steps] == [("notice", "waiting for another turn"), ("answer", "")]


def test_results_of_calls_that_the_bridge_made_are_steps() -> None:
    receipt = ToolResult("end-1", "Submission recorded.", name="submit_and_exit")
    (step,) = record(EndingResults((receipt,))).steps
    assert (step.kind, step.name, step.text, step.call_id) == (
        *("result", "submit_and_exit"),
        *("Submission recorded.", "end-1"),
    )


def test_a_record_says_how_long_its_turn_waited_for_what(trace: Trace) -> None:
    with trace.measure_waiting("another turn"):
        pass
    with trace.measure_waiting("a run under way"):
        time.sleep(0.002)
    done = record(Text("Hi"), trace=trace)
    assert done.waits == trace.waits
    assert done.waited_for == "a run under way"


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([Text("Hi"), Stopped("end_turn")], "stop"),
        ([Text("Hi"), Stopped("max_steps")], "length"),
        ([ToolCall("c1", "read", "{}"), Stopped("max_steps")], "tool_calls"),
        ([], "stop"),
    ],
)
def test_the_outcome_is_the_finish_reason_that_the_client_saw(events: list[TurnEvent], outcome: str) -> None:
    assert record(*events).outcome == outcome


def test_the_outcome_says_that_the_client_left_whatever_the_turn_did() -> None:
    assert record(Text("Hi"), gone=True).outcome == "client_gone"
    assert record(fault=LettaTimeout("late"), gone=True).outcome == "client_gone"


def test_a_failure_is_recorded_by_its_code() -> None:
    done = record(Text("Half"), fault=LettaTimeout("It did not answer."))
    assert (done.outcome, done.message, done.failed, done.ended) == ("letta_timeout", "It did not answer.", True, False)
    assert done.steps[-1].kind == "failed"


def test_a_fault_of_the_bridge_is_recorded_without_its_words() -> None:
    done = record(fault=ZeroDivisionError("canary"))
    assert (done.outcome, done.message) == ("internal_error", "")


def test_the_costs_of_a_turn_are_those_of_its_request(trace: Trace) -> None:
    for call in ("GET /v1/agents/{id}", "PUT /v1/tools/", "PUT /v1/tools/"):
        trace.count_letta_call(call)
    done = record(Text("Hi"), trace=trace)
    assert (done.letta_calls, done.stubs_put) == (3, 2)
    assert done.seconds >= done.letta_seconds + done.waited_seconds


def test_a_turn_that_runs_has_a_record_that_grows() -> None:
    running = builder(MethodChosen("native"), Text("It is "))
    first = running.record()
    running.add_event(Text("here."))
    second = running.record()
    assert [(one.outcome, one.method, one.characters) for one in (first, second)] == [
        ("running", "native", 6),
        ("running", "native", 11),
    ]
    assert [step.text for one in (first, second) for step in one.steps] == ["It is ", "It is here."]
    done = running.end(None, gone=False)
    running.add_event(Text("More."))
    assert running.record() == done


def test_a_call_that_is_held_for_the_client_is_one_step() -> None:
    held = AgentCall("m1", "x", READ.name, "{}", held=True)
    done = record(OFFERED, held, ToolCall("c2", "fs/read", "{}"))
    assert [step.kind for step in done.steps] == ["sync", "result", "call"]


def test_without_the_setting_no_text_is_kept() -> None:
    texts = (Reasoning("secret"), Reasoning("secret"), Text("secret"), ToolCall("c2", "fs/read", "secret"))
    done = record(OFFERED, *texts, keeps_text=False)
    assert {step.text for step in done.steps} == {""}
    assert [step.size for step in done.steps] == [1, 8, 12, 6, 6]


def test_of_a_long_text_the_beginning_and_the_size_are_kept() -> None:
    (step,) = record(*(Text("0123456789") for _ in range(5000))).steps
    assert (step.text, step.size) == ("0123456789" * 40, 50_000)


def test_a_long_name_is_cut() -> None:
    (step,) = record(ToolCall("c1", "x" * 1000, "{}")).steps
    assert step.name == "x" * BRIEF


def test_calls_at_the_end_of_a_long_turn_are_not_cut() -> None:
    steps: list[TurnEvent] = [AgentReturn("m", "c", "x") for _ in range(1000)]
    done = record(*steps, Text("And now:"), ToolCall("c2", "fs/read", "{}"))
    assert [step.name for step in done.calls] == ["fs/read"]
    assert len(done.steps) == MOST_STEPS + 1


def test_all_calls_are_counted_and_the_first_ones_are_steps() -> None:
    done = record(*(ToolCall("c", "read", "{}") for _ in range(MOST_CALLS + 5)))
    assert (done.called, len(done.calls)) == (MOST_CALLS + 5, MOST_CALLS)


def test_the_cards_are_those_of_the_offered_tools() -> None:
    built = builder(MethodChosen("native"), OFFERED)
    assert built.digests == {"fs/read": READ.digest}
    (card,) = built.tool_cards({READ.digest, "another"})
    assert (card.client_name, card.server_name, card.parameters) == ("fs/read", READ.name, READ.spec.parameters)
    assert (card.changes, card.method, card.since) == (READ.changes, "native", pytest.approx(NOON, abs=60))
    assert built.tool_cards({"another"}) == []


def test_a_request_aside_is_recorded_as_such() -> None:
    assert record(turn=replace(TURN, aside=True)).aside


def test_messages_of_the_agent_are_separated_as_the_client_sees_them() -> None:
    record = builder(
        Reasoning("hm", "message-1"),
        Reasoning("so", "message-2"),
        Text("First", "message-1"),
        Text(".", "message-1"),
        Text("Second.", "message-2"),
    ).record()
    assert [(step.kind, step.text, step.size) for step in record.steps] == [
        ("thought", "hm\n\nso", 6),
        ("answer", "First.\n\nSecond.", 15),
    ]
    assert record.characters == 15


def test_the_record_shows_what_the_agent_said_and_that_it_was_asked_again() -> None:
    done = record(
        OriginalReply("I don't know.", "it contains no JSON value instead of one"),
        OriginalReply("Here: {}"),
        FormatChecked("valid"),
        Text("{}"),
        Stopped("end_turn"),
    )
    assert [(step.kind, step.text, step.ok) for step in done.steps] == [
        ("said", "I don't know.", False),
        ("asked again", "it contains no JSON value instead of one", True),
        ("said", "Here: {}", True),
        ("answer", "{}", True),
    ]
    assert (done.reply_format, done.characters) == ("valid", 2)


def test_words_that_are_not_kept_are_counted() -> None:
    done = record(OriginalReply("I don't know.", "it is wrong"), keeps_text=False)
    assert [(step.text, step.size) for step in done.steps] == [("", 13), ("", 11)]


def test_the_record_shows_what_the_agent_looked_for() -> None:
    done = record(
        replace(OFFERED, behind_search=1_970),
        ToolsLookedUp("search_tools", '{"words": "weather"}', "weather: Tells it.", ok=True),
        ToolsLookedUp("call_tool", '{"name": "wether"}', "There is no such tool.", ok=False),
    )
    assert [(step.kind, step.name, step.text, step.ok) for step in done.looked_up] == [
        ("looked up", "search_tools", '{"words": "weather"}\nweather: Tells it.', True),
        ("looked up", "call_tool", '{"name": "wether"}\nThere is no such tool.', False),
    ]
    assert done.behind_search == 1_970
