from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bridge.sync.concurrently import call_concurrently
from bridge.trace import Trace, current_trace, current_trace_or_none, set_current_trace
from tests.waiting import SOON

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.mark.parametrize("sent", ["a", "01234567-89ab-cdef-0123-456789abcdef", "req_1.2:3@4/5+6=7", "x" * 200])
def test_a_request_keeps_the_id_that_its_caller_sent(sent: str) -> None:
    assert Trace(sent).request_id == sent


@pytest.mark.parametrize("sent", ["", "x" * 201, "a b", "a\nb", "a\x1b[31m", 'a"b', "\u00e9", "a\n", "{a}"])
def test_an_id_that_could_do_harm_in_a_log_is_replaced(sent: str) -> None:
    made = Trace(sent).request_id
    assert len(made) == 32
    assert made.isalnum()


def test_a_trace_is_continued_with_a_new_span() -> None:
    version, trace_id, span, flags = Trace("", PARENT).traceparent.split("-")
    assert (version, trace_id, flags) == ("00", "4bf92f3577b34da6a3ce929d0e0e4736", "01")
    assert len(span) == 16
    assert span != "00f067aa0ba902b7"


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00-0-0-00",
        PARENT.upper(),
        PARENT + "\n",
        PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        PARENT.replace("00f067aa0ba902b7", "0" * 16),
        "01" + PARENT[2:],
    ],
)
def test_an_invalid_trace_is_not_sent_on(parent: str) -> None:
    assert Trace("", parent).traceparent == ""


def test_parallel_calls_are_all_counted_but_their_time_only_once() -> None:
    trace = Trace()
    set_current_trace(trace)
    inside = threading.Barrier(4)

    def call(number: int) -> Trace:
        current_trace().count_letta_call("PUT /v1/tools/")
        with current_trace().measure_letta_call():
            inside.wait(SOON)
            before = current_trace().letta_seconds
            inside.wait(SOON)
            assert current_trace().letta_seconds >= before
        return current_trace()

    assert call_concurrently(call, [1, 2, 3, 4]) == [trace] * 4
    assert (trace.letta_calls, dict(trace.calls)) == (4, {"PUT /v1/tools/": 4})
    assert 0 < trace.letta_seconds < trace.seconds
    ended = trace.letta_seconds
    assert trace.letta_seconds == ended


def test_calls_of_other_requests_are_not_counted() -> None:
    trace = Trace()
    set_current_trace(trace)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_trace_or_none).result() is None
        pool.submit(lambda: current_trace().count_letta_call("GET /v1/tools/")).result()
    assert trace.letta_calls == 0


def test_waiting_is_counted_by_cause_and_together() -> None:
    trace = Trace()
    with trace.measure_waiting("another turn"), trace.measure_waiting("a run under way"):
        time.sleep(0.01)
    with trace.measure_waiting("a run under way"):
        time.sleep(0.01)
    assert trace.waits.keys() == {"another turn", "a run under way"}
    assert 0.01 <= trace.waits["another turn"] < trace.waits["a run under way"] <= trace.waited_seconds
    assert trace.waited_seconds < sum(trace.waits.values())
