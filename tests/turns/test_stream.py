from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from bridge.journal.batches import End
from bridge.trace import Trace, set_current_trace
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
)
from bridge.turns.stream import FORMAT_KNOWN, SHOWN, TurnStream
from tests.waiting import SOON

WELL = End("well")
PREPARING: list[AgentEvent] = [
    Notice("waiting for another turn"),
    MethodChosen("native"),
    RunStarted("run-1"),
    AgentCall("message-1", "call_1", "search", "{}"),
    AgentReturn("message-2", "call_1", "None"),
]


def test_every_reader_reads_from_the_start() -> None:
    stream = TurnStream()
    early = stream.reader()
    stream.write(Text("a"))
    assert early.read(SOON) == [Text("a")]
    stream.write(Text("b"))
    stream.finish(WELL)
    assert early.read(SOON) == [Text("b")]
    assert stream.reader().read(SOON) == [Text("a"), Text("b")]


def test_a_stream_can_be_read_after_its_end() -> None:
    reader = TurnStream([Text("a")], WELL).reader()
    assert not reader.at_end
    assert reader.read(SOON) == [Text("a")]
    assert reader.at_end
    assert reader.read(SOON) == []


def test_a_reader_gets_an_event_as_soon_as_it_is_written() -> None:
    stream = TurnStream()
    reader = stream.reader()
    threading.Timer(0.05, stream.write, [Text("a")]).start()
    assert reader.read(SOON) == [Text("a")]
    assert not reader.at_end


def test_a_reader_gets_nothing_when_nothing_comes_in_time() -> None:
    stream = TurnStream([Text("a")])
    reader = stream.reader()
    assert reader.read(SOON) == [Text("a")]
    assert reader.read(0.001) == []
    assert not reader.at_end


def test_signals_for_events_that_were_read_do_not_end_the_next_wait() -> None:
    stream = TurnStream()
    reader = stream.reader()
    for text in "abc":
        stream.write(Text(text))
    assert len(reader.read(SOON)) == 3
    threading.Timer(0.05, stream.write, [Text("d")]).start()
    assert reader.read(SOON) == [Text("d")]


def test_the_end_ends_a_wait() -> None:
    stream = TurnStream()
    reader = stream.reader()
    threading.Timer(0.05, stream.finish, [WELL]).start()
    assert reader.read(SOON) == []
    assert reader.at_end


def test_a_closed_reader_is_not_signalled_any_more() -> None:
    stream = TurnStream()
    stream.reader().close()
    stream.write(Text("a"))
    assert stream._bells == []


@pytest.mark.parametrize("sign", [Text("a"), Reasoning("a"), ToolCall("call_1", "read", "{}")])
def test_what_a_client_is_shown_is_a_sign(sign: AgentEvent) -> None:
    stream = TurnStream(PREPARING)
    assert not stream.has_any(SHOWN)
    stream.write(sign)
    assert stream.has_any(SHOWN)


def test_the_wait_for_a_sign_reads_nothing() -> None:
    stream = TurnStream()
    reader = stream.reader()
    threading.Timer(0.05, stream.write, [Text("a")]).start()
    reader.wait_for_any(SHOWN, SOON)
    assert reader.read(0) == [Text("a")]


@pytest.mark.parametrize("seen", range(len(PREPARING) + 1))
def test_events_that_no_client_is_shown_do_not_end_the_wait_for_a_sign(seen: int) -> None:
    """Some servers name their run at once; a model that fails a moment later still gets its true status."""
    stream = TurnStream()
    reader = stream.reader()
    for event in PREPARING[:seen]:
        stream.write(event)
    reader.wait_for_any(SHOWN, 0.001)
    assert not stream.has_any(SHOWN)


def test_the_wait_for_a_sign_ends_with_an_answer_that_says_nothing() -> None:
    TurnStream([Stopped("end_turn")], WELL).reader().wait_for_any(SHOWN, SOON)


def test_the_choice_of_the_method_is_the_first_event_of_a_turn_apart_from_notices() -> None:
    assert TurnStream([Notice("waiting"), MethodChosen("native")]).chosen == MethodChosen("native")
    assert TurnStream([MethodChosen("native"), Text("a")]).chosen == MethodChosen("native")
    assert TurnStream([Text("a")]).chosen is None


def test_the_run_is_the_last_one_that_the_server_named() -> None:
    assert TurnStream([RunStarted("run-1"), Text("a"), RunStarted("run-2")]).run_id == "run-2"
    assert TurnStream([Text("a")]).run_id == ""


def test_the_outcome_of_the_check_is_known_when_the_text_is_checked() -> None:
    stream = TurnStream()
    stream.write(Reasoning("hm"))
    assert (stream.format_outcome, stream.has_any(FORMAT_KNOWN)) == (None, False)
    stream.write(FormatChecked("invalid"))
    assert (stream.format_outcome, stream.has_any(FORMAT_KNOWN)) == ("invalid", True)


def test_a_recorded_answer_has_its_outcome() -> None:
    assert TurnStream([FormatChecked("valid"), Text("{}")], WELL).format_outcome == "valid"


def rings(stream: TurnStream) -> list[None]:
    """Returns a list that grows whenever a reader of the stream is woken."""
    reader, found = stream.reader(), list[None]()
    reader._bell.queue = SimpleNamespace(put=found.append)  # type: ignore[assignment]
    return found


@pytest.fixture
def trace() -> Iterator[Trace]:
    trace = Trace()
    set_current_trace(trace)
    yield trace
    set_current_trace(None)


def test_pieces_of_text_wake_a_reader_when_the_thread_waits_for_letta_again(trace: Trace) -> None:
    stream = TurnStream()
    woken = rings(stream)
    trace.reads_stream = True
    for piece in (Text("a"), Reasoning("b"), Text("c")):
        stream.write(piece)
    assert woken == []
    trace.do_what_was_put_off()
    trace.do_what_was_put_off()
    assert woken == [None]


@pytest.mark.parametrize("event", [Notice("waiting"), ToolCall("1", "read", "{}"), Stopped("end_turn")])
def test_other_events_wake_a_reader_at_once(trace: Trace, event: AgentEvent) -> None:
    stream = TurnStream()
    woken = rings(stream)
    trace.reads_stream = True
    stream.write(Text("a"))
    stream.write(event)
    assert woken == [None]


def test_text_wakes_a_reader_at_once_if_no_stream_of_letta_is_read(trace: Trace) -> None:
    stream = TurnStream()
    woken = rings(stream)
    stream.write(Text("a"))
    assert woken == [None]
    trace.reads_stream = True
    stream.write(Text("b"))
    stream.finish(WELL)
    assert woken == [None, None]
