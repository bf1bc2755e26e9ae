from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

import pytest

from bridge.errors import LettaUnreachable
from bridge.journal.stream import TurnStream
from bridge.journal.stream import run_in_thread as run_with_signal
from bridge.turn import AgentCall, AgentEvent, AgentReturn, MethodChosen, Reasoning, RunStarted, Stopped, Text, ToolCall
from tests.waiting import SOON

PREPARING: list[AgentEvent] = [
    MethodChosen("native"),
    RunStarted("run-1"),
    AgentCall("message-1", "call_1", "search", "{}"),
    AgentReturn("message-2", "call_1", "None"),
]


def run_in_thread(events: Iterable[AgentEvent]) -> TurnStream:
    return run_with_signal(lambda gone: events)


def happening(*steps: AgentEvent | Exception | threading.Event) -> Iterator[AgentEvent]:
    for step in steps:
        if isinstance(step, threading.Event):
            step.wait(SOON)
        elif isinstance(step, Exception):
            raise step
        else:
            yield step


def read(feed: TurnStream) -> list[AgentEvent]:
    return [event for event in feed.read(SOON) if event is not None]


def test_a_reader_gets_all_events_in_order_and_then_the_end() -> None:
    assert read(run_in_thread(happening(Text("a"), Text("b"), Stopped("end_turn")))) == [
        Text("a"),
        Text("b"),
        Stopped("end_turn"),
    ]


def test_a_turn_without_events_just_ends() -> None:
    assert read(run_in_thread(happening())) == []


def test_every_reader_reads_from_the_start_also_after_the_end() -> None:
    feed = run_in_thread(happening(Text("a"), Text("b")))
    assert read(feed) == read(feed) == [Text("a"), Text("b")]


def test_an_event_is_read_while_the_turn_goes_on() -> None:
    go_on = threading.Event()
    reader = run_in_thread(happening(Text("a"), go_on, Text("b"))).read(SOON)
    assert next(reader) == Text("a")
    go_on.set()
    assert [*reader] == [Text("b")]


def test_a_reader_is_told_when_nothing_happens() -> None:
    go_on = threading.Event()
    reader = run_in_thread(happening(Text("a"), go_on, Text("b"))).read(0.001)
    assert next(event for event in reader if event is not None) == Text("a")
    assert next(reader) is None
    go_on.set()
    assert [event for event in reader if event is not None] == [Text("b")]


def test_a_failure_comes_to_every_reader_behind_the_events_before_it() -> None:
    feed = run_in_thread(happening(Text("a"), LettaUnreachable("It broke.")))
    for _ in range(2):
        seen: list[AgentEvent | None] = []
        with pytest.raises(LettaUnreachable, match="It broke"):
            seen.extend(feed.read(SOON))
        reader = feed.read(SOON)
        assert next(reader) == Text("a")


def test_a_fault_of_our_own_comes_to_the_reader_too() -> None:
    with pytest.raises(ZeroDivisionError):
        read(run_in_thread(1 // zero for zero in [0]))  # type: ignore[misc]


def test_the_turn_goes_on_when_its_reader_has_gone() -> None:
    go_on, done = threading.Event(), threading.Event()

    def events() -> Iterator[AgentEvent]:
        yield Text("a")
        go_on.wait(SOON)
        yield Text("b")
        done.set()

    feed = run_in_thread(events())
    reader = feed.read(SOON)
    assert next(reader) == Text("a")
    reader.close()  # type: ignore[attr-defined]
    go_on.set()
    assert done.wait(SOON)
    assert read(feed) == [Text("a"), Text("b")]


# --- the first sign ---------------------------------------------------------------------------------------


def test_a_turn_that_fails_before_its_first_sign_raises_at_once() -> None:
    with pytest.raises(LettaUnreachable):
        run_in_thread(happening(LettaUnreachable("It broke."))).wait_for_first(SOON)


@pytest.mark.parametrize("seen", range(len(PREPARING) + 1))
def test_what_no_client_is_sent_is_no_sign_yet(seen: int) -> None:
    """Some servers name their run at once; a model that fails a moment later still gets its true status."""
    with pytest.raises(LettaUnreachable):
        run_in_thread(happening(*PREPARING[:seen], LettaUnreachable("It broke."))).wait_for_first(SOON)


@pytest.mark.parametrize("sign", [Text("a"), Reasoning("a"), ToolCall("call_1", "read", "{}")])
def test_a_failure_after_the_first_sign_is_left_to_the_reader(sign: AgentEvent) -> None:
    feed = run_in_thread(happening(*PREPARING, sign, LettaUnreachable("It broke.")))
    feed.wait_for_first(SOON)
    with pytest.raises(LettaUnreachable):
        read(feed)


def test_the_wait_for_a_sign_is_over_with_the_first_one() -> None:
    go_on = threading.Event()
    feed = run_in_thread(happening(*PREPARING, Text("a"), go_on))
    feed.wait_for_first(SOON)
    assert next(event for event in feed.read(SOON) if isinstance(event, Text)) == Text("a")
    go_on.set()


def test_the_wait_for_a_sign_is_over_with_an_answer_that_says_nothing() -> None:
    run_in_thread(happening(Stopped("end_turn"))).wait_for_first(SOON)


def test_the_wait_for_a_sign_has_an_end() -> None:
    go_on = threading.Event()
    feed = run_in_thread(happening(go_on, Text("a")))
    feed.wait_for_first(0.001)
    go_on.set()
    assert read(feed) == [Text("a")]


def test_the_method_of_a_turn_is_known_with_its_first_event() -> None:
    feed = run_in_thread(happening(MethodChosen("native"), Text("a")))
    feed.wait_for_first(SOON)
    assert feed.method == "native"


def test_a_turn_without_a_method_has_none() -> None:
    feed = run_in_thread(happening(Text("a")))
    feed.wait_for_first(SOON)
    assert feed.method == ""
