from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge import sse
from bridge.errors import BridgeError, LettaUnreachable, RunBrokenOff
from bridge.letta.events import read_run
from bridge.turn import JsonObject, Text
from tests.stream_cases import CASES, expected, messages, outcome, stream


@pytest.mark.parametrize("case", CASES)
def test_recorded_streams_become_the_expected_events(case: str) -> None:
    assert outcome([stream(case)]) == expected(case)


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("case", CASES)
def test_a_stream_gives_the_same_events_byte_by_byte(case: str) -> None:
    body = stream(case)
    assert outcome(body[at : at + 1] for at in range(len(body))) == expected(case)


@pytest.mark.fault("events of Letta in slices, of odd form, or none at all")
@pytest.mark.parametrize("case", CASES)
def test_a_stream_gives_the_same_events_when_cut_at_any_byte(case: str) -> None:
    body = stream(case)
    whole = list(sse.decode_events([body]))
    for at in range(len(body)):
        assert list(sse.decode_events([body[:at], body[at:]])) == whole


@pytest.mark.fault("the stream of Letta breaks at any place")
@pytest.mark.parametrize("case", CASES)
def test_a_stream_that_breaks_does_not_look_complete(case: str) -> None:
    """Cut after each message, it yields all events before the cut, and then its true end or the error that it broke."""
    known = list(messages([stream(case)]))
    whole = expected(case)
    broken = {"kind": "LettaUnreachable", "code": "stream_cut"}
    for length in range(len(known)):
        encoded = b"".join(map(sse.encode_event, known[:length]))
        found = outcome([encoded])
        happened = [event for event in found["events"] if event["kind"] not in ("Used", "Stopped")]
        assert happened == whole["events"][: len(happened)]
        stopped = any((message or {}).get("message_type") == "stop_reason" for message in known[:length])
        assert stopped or found["failure"] in (broken, whole["failure"])
        assert stopped or found["failure"] is not None
        assert (found["failure"] is None) == (found["events"][-1:] != [] and found["events"][-1]["kind"] == "Stopped")


@pytest.mark.parametrize("case", CASES)
def test_a_run_ends_either_with_its_stop_or_with_a_failure(case: str) -> None:
    wanted = expected(case)
    stops = [event for event in wanted["events"] if event["kind"] == "Stopped"]
    assert len(stops) == (0 if wanted["failure"] else 1)
    assert wanted["failure"] or wanted["events"][-1] == stops[0]


def test_an_event_is_yielded_before_the_next_message_is_read() -> None:
    def endless() -> Iterator[JsonObject | None]:
        yield {"message_type": "assistant_message", "id": "message-1", "content": "Hel"}
        raise LettaUnreachable("read on")

    events = read_run(endless())
    assert next(events) == Text("Hel", "message-1")
    with pytest.raises(LettaUnreachable):
        next(events)


def test_messages_after_the_end_are_not_read() -> None:
    def more() -> Iterator[JsonObject | None]:
        yield None
        raise AssertionError("read on")

    assert len(list(read_run(more()))) == 1


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"status_code": 404, "detail": "StepMetrics not found with identifier step-1"}},
        {"message_type": "error_message", "error_type": "internal_error", "detail": "StepMetrics not found"},
    ],
)
def test_an_error_event_about_a_lost_row_is_a_lost_run(event: JsonObject) -> None:
    with pytest.raises(RunBrokenOff):
        list(read_run([event]))


def test_the_words_of_a_failure_are_in_its_note_and_not_in_its_message() -> None:
    raw = {"message_type": "error_message", "error_type": "llm_error", "message": "canary", "detail": None}
    with pytest.raises(BridgeError) as caught:
        list(read_run([raw]))
    assert "canary" not in caught.value.message
    assert "canary" in "".join(caught.value.__notes__)
