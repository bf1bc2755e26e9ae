from __future__ import annotations

import json

from bridge.errors import InternalFailure, LettaTimeout, ModelOverloaded
from bridge.journal.batches import Assembly, Batch, End, batch_from_text, batch_to_text, failure_from_fault
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    FormatChecked,
    MethodChosen,
    Notice,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    Used,
)

EVERY_KIND: list[AgentEvent] = [
    Notice("waiting for another turn"),
    MethodChosen("native"),
    Reasoning("hm", "message-1"),
    FormatChecked("invalid"),
    Text("\ud800 ä", "message-2"),
    AgentCall("message-1", "call_1", "search", "{}", True, 2),
    AgentReturn("message-1", "call_1", "found", False),
    ToolCall("call_2", "read", "{}"),
    RunStarted("run-1"),
    Used(1, 2, 3, "step-1"),
    Stopped("end_turn"),
]
A, B, C = Text("a"), Text("b"), Text("c")
WELL = End("well")


def test_every_event_comes_back_from_the_store_as_it_was() -> None:
    assert {type(event) for event in EVERY_KIND} == set(AgentEvent.__args__)
    assert batch_from_text(batch_to_text(EVERY_KIND)) == Batch(tuple(EVERY_KIND))
    assert batch_from_text(batch_to_text([], WELL, 7)) == Batch((), WELL, 7)


def test_a_failure_comes_back_from_the_store_with_all_that_a_client_sees() -> None:
    failure = ModelOverloaded("Too much.", param="model", code="slow_down", retry_after=7)
    end = batch_from_text(batch_to_text([], End("failed", failure, gone=True))).end
    assert end is not None
    assert (end.how, end.gone, type(end.failure)) == ("failed", True, ModelOverloaded)
    assert vars(end.failure) == vars(failure)


def test_a_failure_that_another_version_named_is_one_of_the_bridge() -> None:
    text = batch_to_text([], End("failed", LettaTimeout("late"))).replace("LettaTimeout", "LettaAsleep")
    end = batch_from_text(text).end
    assert end is not None
    assert (type(end.failure), end.failure and end.failure.message) == (InternalFailure, "late")


def test_an_event_that_another_version_wrote_breaks_no_answer() -> None:
    batch = batch_from_text(json.dumps([0, [["Dance", 3], ["Text", "Hello", "message-1", "more"]], None]))
    assert batch.events == (Notice("Dance: an event of another version of the bridge"), Text("Hello", "message-1"))


def test_clients_see_the_errors_of_the_bridge_and_nothing_of_other_faults() -> None:
    late = LettaTimeout("late")
    assert failure_from_fault(late) is late
    assert "canary" not in failure_from_fault(ValueError("canary")).message


def test_batches_become_the_events_of_the_attempt() -> None:
    assembly, texts = Assembly(), [batch_to_text([A, B])]
    assert assembly.add(texts) == [A, B]
    assert assembly.add(texts) == []
    assert assembly.end is None
    assert assembly.add([*texts, batch_to_text([C], WELL, 2)]) == [C]
    assert assembly.end == WELL


def test_events_that_were_written_twice_count_once() -> None:
    assembly = Assembly()
    assert assembly.add(
        [batch_to_text([A]), batch_to_text([A, B]), batch_to_text([C], WELL, 2), batch_to_text([A])]
    ) == [A, B, C]
    assert assembly.end == WELL


def test_an_attempt_with_a_gap_did_not_end_well() -> None:
    assembly = Assembly()
    assert assembly.add([batch_to_text([A]), batch_to_text([C], WELL, 2)]) == [A]
    assert assembly.end == End("incomplete")


def test_a_list_that_the_store_lost_is_read_again_from_its_start() -> None:
    assembly = Assembly()
    assert assembly.add([batch_to_text([A]), batch_to_text([B], None, 1)]) == [A, B]
    assert assembly.add([batch_to_text([C], WELL, 2)]) == [C]
    assert assembly.end == WELL


def test_a_gap_is_filled_by_events_that_are_written_again() -> None:
    assembly = Assembly()
    assert assembly.add([batch_to_text([B], None, 1), batch_to_text([A, B]), batch_to_text([C], WELL, 2)]) == [A, B, C]
    assert assembly.end == WELL
