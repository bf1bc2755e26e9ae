from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
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
from tests.waiting import SOON, until

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


# --- pieces that the thread of the turn sends ------------------------------------------------------------------


class Reading:
    """A reader in a thread of its own, which notes what it reads, with "woken" for a read without events."""

    def __init__(self, stream: TurnStream) -> None:
        self.got: list[AgentEvent | str] = []
        self.takes_all = True
        self.stream, self.reader = stream, stream.reader()
        self.reader.let_others_send(self.send)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def send(self, pieces: Sequence[AgentEvent]) -> bool:
        self.got += [("sent", piece.text) if isinstance(piece, Text) else piece for piece in pieces]  # type: ignore[misc]
        return self.takes_all

    def read(self) -> None:
        while not self.reader.at_end:
            self.got += self.reader.read(SOON) or ["woken"]

    def wait_until_asleep(self) -> None:
        until(lambda: not self.reader._awake.locked())

    def end(self) -> list[AgentEvent | str]:
        self.stream.finish(WELL)
        self.thread.join(SOON)
        assert not self.thread.is_alive()
        return self.got


def test_pieces_are_sent_by_the_thread_that_writes_them_while_the_reader_sleeps() -> None:
    reading = Reading(TurnStream())
    for text in "ab":
        reading.wait_until_asleep()
        reading.stream.write(Text(text))
    assert reading.end() == [("sent", "a"), ("sent", "b"), "woken"]


def test_a_reader_that_is_awake_reads_pieces_itself() -> None:
    stream = TurnStream()
    reader, sent = stream.reader(), list[AgentEvent]()
    reader.let_others_send(lambda pieces: not sent.extend(pieces))
    stream.write(Text("a"))
    assert reader.read(SOON) == [Text("a")]
    assert sent == []


@pytest.mark.parametrize("event", [Notice("waiting"), ToolCall("1", "read", "{}"), Stopped("end_turn")])
def test_other_events_are_read_by_the_reader_with_the_pieces_around_them(event: AgentEvent, trace: Trace) -> None:
    reading = Reading(TurnStream())
    reading.wait_until_asleep()
    trace.reads_stream = True
    reading.stream.write(Text("a"))  # put off until the thread waits for Letta
    reading.stream.write(event)
    until(lambda: len(reading.got) == 2)
    assert reading.end() == [Text("a"), event, "woken"]


def test_a_sender_that_could_not_send_everything_wakes_the_reader() -> None:
    reading = Reading(TurnStream())
    reading.wait_until_asleep()
    reading.takes_all = False
    reading.stream.write(Text("a"))
    until(lambda: len(reading.got) == 2)
    reading.wait_until_asleep()
    assert reading.end() == [("sent", "a"), "woken", "woken"]


def test_no_event_is_lost_or_twice_or_late_whoever_sends_it() -> None:
    stream, got, by_others = TurnStream(), list[AgentEvent](), 0
    reader = stream.reader()

    def send(pieces: Sequence[AgentEvent]) -> bool:
        nonlocal by_others
        by_others += len(pieces)
        got.extend(pieces)
        return len(got) % 7 != 0

    def read() -> None:
        while not reader.at_end:
            got.extend(reader.read(0.001))

    reader.let_others_send(send)
    thread = threading.Thread(target=read)
    thread.start()
    events = [Notice(str(number)) if number % 5 == 0 else Text(str(number)) for number in range(3_000)]
    for number, event in enumerate(events):
        stream.write(event)
        if number % 11 == 0:
            time.sleep(0.0001)
    stream.finish(WELL)
    thread.join(SOON)
    assert got == events
    assert by_others


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
