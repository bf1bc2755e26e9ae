"""While a client runs a tool for the agent, a message of another conversation waits, is refused, or closes the call."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.errors import Busy, CallsUnanswered, InvalidRequest, RequestConflict, StoreUnavailable
from bridge.locks.open_calls import OpenCalls
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import Message, ToolCall, ToolChoice, ToolResult, ToolSpec, Turn
from bridge.values import ToolWait
from tests.asked import turn_of
from tests.clock import Clock
from tests.stores import FailingStore

AGENT = "agent-1"
CALL = ToolCall("call_1", "weather", "{}")
HELLO = Message("user", "Hello")
WEATHER = (ToolSpec("weather"),)
ASKS = turn_of(HELLO, tools=WEATHER, client="roo")
OTHER = turn_of(Message("user", "What time is it?"), tools=(ToolSpec("clock"),), client="roo")
NEVER = threading.Event()
KEEP = ToolWait(60.0)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


def after_a_call(store: Store, wait: ToolWait = KEEP, turn: Turn = ASKS, *calls: ToolCall) -> OpenCalls:
    """Returns the open calls after a turn that ended with a call, or with these calls."""
    made = OpenCalls(store, wait, {"attempt_completion"})
    made.note(AGENT, turn, calls or [CALL])
    return made


def test_another_conversation_has_to_wait_until_the_call_is_answered(store: Store) -> None:
    calls = after_a_call(store)
    noted = calls.find_calls_to_wait_for(AGENT, OTHER)
    assert noted is not None
    threading.Timer(0.1, calls.note, (AGENT, ASKS, [])).start()
    calls.wait_until_closed(AGENT, noted, time.monotonic() + 20, NEVER)
    assert calls.find_calls_to_wait_for(AGENT, OTHER) is None


def test_the_wait_for_an_open_call_ends(store: Store) -> None:
    calls = after_a_call(store)
    with pytest.raises(Busy) as busy:
        calls.wait_until_closed(AGENT, calls.find_calls_to_wait_for(AGENT, OTHER) or "", time.monotonic(), NEVER)
    assert busy.value.retry_after is not None


def test_a_call_without_an_answer_is_ignored_after_a_while(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    calls = after_a_call(LocalStore(tmp_path / "shared.db", clock))
    noted = calls.find_calls_to_wait_for(AGENT, OTHER)
    assert noted is not None
    threading.Timer(0.1, setattr, (clock, "now", clock.now + KEEP.seconds)).start()
    calls.wait_until_closed(AGENT, noted, time.monotonic() + 20, NEVER)
    assert calls.find_calls_to_wait_for(AGENT, OTHER) is None


def test_with_refuse_other_conversations_get_409_at_once(store: Store) -> None:
    with pytest.raises(RequestConflict) as refused:
        after_a_call(store, ToolWait(30, refuse=True)).find_calls_to_wait_for(AGENT, OTHER)
    assert (refused.value.status, refused.value.code) == (409, "tool_result_pending")


def test_without_time_to_wait_no_conversation_waits(store: Store) -> None:
    assert after_a_call(store, ToolWait(0)).find_calls_to_wait_for(AGENT, OTHER) is None


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("calls", [[CALL], []])
def test_a_turn_does_not_fail_when_its_calls_cannot_be_noted(
    store: Store, calls: list[ToolCall], caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(store, fault=StoreUnavailable("gone"))
    OpenCalls(failing, KEEP).note(AGENT, ASKS, calls)
    assert "gone" in caplog.text


def test_an_agent_without_an_open_call_is_free(store: Store) -> None:
    calls = after_a_call(store)
    assert calls.find_calls_to_wait_for("agent-2", OTHER) is None


# --- whose turn it is --------------------------------------------------------------------------------------

CALLED = Message("assistant", tool_calls=(CALL,))
RESULT = Message("tool", "12 degrees", tool_call_id=CALL.id)
NEXT = Message("user", "Never mind.")


@pytest.mark.parametrize(
    "turn",
    [
        turn_of(HELLO, CALLED, RESULT, tools=WEATHER, client="roo"),
        turn_of(HELLO, CALLED, NEXT, tools=WEATHER, client="roo"),
        turn_of(HELLO, NEXT, client="roo"),
        turn_of(Message("user", "A summary."), CALLED, RESULT, tools=WEATHER, client="roo"),
        turn_of(Message("user", "A summary."), CALLED, RESULT, tools=WEATHER),
    ],
    ids=[
        "the result",
        "another message instead",
        "a longer transcript without the call",
        "a rewritten history",
        "no keys",
    ],
)
def test_the_conversation_of_the_call_does_not_wait(store: Store, turn: Turn) -> None:
    assert after_a_call(store).find_calls_to_wait_for(AGENT, turn) is None


@pytest.mark.parametrize(
    "turn",
    [
        ASKS,
        turn_of(NEXT, tools=WEATHER, client="roo"),
        turn_of(NEXT, tools=WEATHER, client="another"),
        turn_of(NEXT, client="roo"),
    ],
    ids=["the same opening message", "the same key and tools", "another key", "no tools"],
)
def test_another_conversation_waits_whatever_its_key_and_its_tools_are(store: Store, turn: Turn) -> None:
    assert after_a_call(store).find_calls_to_wait_for(AGENT, turn) is not None


SEEN = Message("assistant", "Calling tools: weather"), Message("user", "Observation: 12")
LONG = Message("user", "New task:\nWhat is in notes.txt?")
GROWN = "\nError: no such town. Now try again."


def grown(message: Message) -> Message:
    return replace(message, text=message.text + GROWN)


@pytest.mark.parametrize("said", [(HELLO, *SEEN), (LONG,)], ids=["after an answer", "a long opening message"])
def test_a_conversation_whose_last_message_has_grown_does_not_wait(store: Store, said: tuple[Message, ...]) -> None:
    calls = after_a_call(store, KEEP, turn_of(*said, client="agents"))
    *before, last = said
    assert calls.find_calls_to_wait_for(AGENT, turn_of(*before, grown(last), client="agents")) is None


@pytest.mark.parametrize(
    ("marked", "asks"),
    [
        ((HELLO,), (grown(HELLO),)),
        ((HELLO, *SEEN), (HELLO, *SEEN)),
        ((HELLO, *SEEN), (LONG, SEEN[0], grown(SEEN[1]))),
        ((HELLO, *SEEN), (HELLO, SEEN[0], grown(HELLO))),
        ((grown(LONG),), (LONG,)),
        ((LONG,), (replace(LONG, text=LONG.text + " And tomorrow?"),)),
    ],
    ids=["a short opening", "the same", "another beginning", "another message", "a shorter one", "no new line"],
)
def test_a_conversation_that_only_looks_as_if_its_last_message_had_grown_waits(
    store: Store, marked: tuple[Message, ...], asks: tuple[Message, ...]
) -> None:
    calls = after_a_call(store, KEEP, turn_of(*marked, client="agents"), ToolCall("call_9", "weather", "{}"))
    assert calls.find_calls_to_wait_for(AGENT, turn_of(*asks, client="agents")) is not None


def test_the_clients_name_of_its_conversation_decides_where_both_have_one(store: Store) -> None:
    calls = after_a_call(store, KEEP, replace(ASKS, session="one"))
    assert calls.find_calls_to_wait_for(AGENT, turn_of(NEXT, session="one", client="roo")) is None
    assert calls.find_calls_to_wait_for(AGENT, turn_of(HELLO, NEXT, session="two", client="roo")) is not None
    assert calls.find_calls_to_wait_for(AGENT, turn_of(HELLO, NEXT, client="roo")) is None


@pytest.mark.parametrize(
    "turn",
    [
        turn_of(HELLO, Message("assistant", "Hi."), NEXT, client="another"),
        turn_of(NEXT, session="one", client="another"),
        turn_of(HELLO, CALLED, NEXT, client="another"),
    ],
    ids=["the same opening message", "the same name", "the call"],
)
def test_a_conversation_of_another_key_waits_however_alike_it_is(store: Store, turn: Turn) -> None:
    calls = after_a_call(store, KEEP, replace(ASKS, session=turn.session))
    assert calls.find_calls_to_wait_for(AGENT, turn) is not None


def test_a_turn_that_names_the_one_with_the_call_does_not_wait(store: Store) -> None:
    calls = after_a_call(store, KEEP, replace(ASKS, id="turn-1"))
    assert calls.find_calls_to_wait_for(AGENT, replace(turn_of(NEXT), follows="turn-1")) is None
    assert calls.find_calls_to_wait_for(AGENT, replace(turn_of(NEXT), follows="turn-2")) is not None


def test_a_result_of_the_call_never_waits_for_itself(store: Store) -> None:
    calls = after_a_call(store, KEEP, replace(ASKS, session="one"))
    assert calls.find_calls_to_wait_for(AGENT, turn_of(HELLO, CALLED, RESULT, session="two")) is None


def test_another_attempt_at_the_turn_that_made_the_call_does_not_wait(store: Store) -> None:
    calls = after_a_call(store, KEEP, replace(ASKS, id="turn-1"))
    assert calls.find_calls_to_wait_for(AGENT, replace(ASKS, id="turn-1", repeated=True)) is None
    assert calls.find_calls_to_wait_for(AGENT, replace(ASKS, id="turn-2", repeated=True)) is not None


# --- calls whose result never comes ------------------------------------------------------------------------

SEVERAL = (*WEATHER, ToolSpec("clock"))
ENDING = ToolCall("call_2", "attempt_completion", "{}")


@pytest.mark.parametrize(
    ("turn", "call"),
    [
        (replace(ASKS, tool_choice=ToolChoice("function", "weather")), CALL),
        (replace(ASKS, tools=SEVERAL, tool_choice=ToolChoice("function", "weather")), CALL),
        (replace(ASKS, tool_choice=ToolChoice("required")), CALL),
        (ASKS, ENDING),
    ],
    ids=["a named tool", "a named tool of several", "any tool of one", "the end of a task"],
)
def test_nobody_waits_for_a_call_that_is_the_answer_itself(store: Store, turn: Turn, call: ToolCall) -> None:
    assert after_a_call(store, KEEP, turn, call).find_calls_to_wait_for(AGENT, OTHER) is None


def test_a_call_that_is_the_answer_itself_leaves_no_older_call_open(store: Store) -> None:
    calls = after_a_call(store)
    calls.note(AGENT, replace(OTHER, tool_choice=ToolChoice("function", "clock")), [ToolCall("call_2", "clock", "{}")])
    assert calls.find_calls_to_wait_for(AGENT, turn_of(NEXT)) is None


@pytest.mark.parametrize(
    ("turn", "calls"),
    [
        (replace(ASKS, tools=SEVERAL, tool_choice=ToolChoice("required")), [CALL]),
        (replace(ASKS, tools=SEVERAL, tool_choice=ToolChoice("function", "clock")), [CALL]),
        (ASKS, [ENDING, CALL]),
    ],
    ids=["any tool of several", "another tool than the named one", "beside the end of a task"],
)
def test_a_call_that_the_model_was_free_to_make_is_waited_for(store: Store, turn: Turn, calls: list[ToolCall]) -> None:
    assert after_a_call(store, KEEP, turn, *calls).find_calls_to_wait_for(AGENT, OTHER) is not None


# --- notes of other versions of the bridge -----------------------------------------------------------------


def open_calls_with_note(store: Store, noted: str) -> OpenCalls:
    store.put(f"open-calls:{AGENT}", noted, KEEP.seconds)
    return OpenCalls(store, KEEP)


def test_a_note_of_an_earlier_version_is_of_the_conversation_with_its_calls(store: Store) -> None:
    calls = open_calls_with_note(store, json.dumps(["roo", "0123456789abcdef", [CALL.id]]))
    assert calls.find_calls_to_wait_for(AGENT, OTHER) is not None
    assert calls.find_calls_to_wait_for(AGENT, turn_of(HELLO, CALLED, RESULT)) is None


@pytest.mark.parametrize(
    "noted", ["", "null", "7", "[]", '["roo", "0", 7]', '[["s"], "", []]', '[["c", "s", "x", ""], "", []]', '{"a": 1}']
)
def test_a_note_that_cannot_be_read_holds_up_nobody(store: Store, noted: str) -> None:
    assert open_calls_with_note(store, noted).find_calls_to_wait_for(AGENT, OTHER) is None


def test_an_earlier_version_can_read_a_note(store: Store) -> None:
    after_a_call(store, KEEP, replace(ASKS, id="turn-1"))
    client, tools, calls = json.loads(store.get(f"open-calls:{AGENT}") or "")
    assert client != ASKS.client
    assert (tools, calls) == ("turn-1", [CALL.id])


# --- an API whose clients answer all calls before they go on ----------------------------------------------

MESSAGE = "message-12345678-1234-1234-1234-123456789001"
CALLS = [ToolCall(CALL_IDS.id_in_message(MESSAGE, place), "weather", "{}") for place in range(12)]
OF_LETTA = replace(turn_of(HELLO, client="roo"), session="letta:default", answers_all_calls=True, call_ids=CALL_IDS)


def answering(*calls: ToolCall, turn: Turn = OF_LETTA) -> Turn:
    results = tuple(ToolResult(call.id, "12 degrees") for call in calls)
    return replace(turn, new_input=replace(turn.new_input, results=results))


def test_a_message_without_the_answers_is_refused_as_letta_refuses_it(store: Store) -> None:
    calls = after_a_call(store, KEEP, OF_LETTA, *CALLS[:2])
    refusal = calls.find_refusal(AGENT, OF_LETTA)
    assert isinstance(refusal, CallsUnanswered)
    assert (refusal.status, refusal.code, refusal.param) == (409, "PENDING_APPROVAL", MESSAGE)
    assert calls.open_request(AGENT, CALL_IDS) == (("roo", "letta:default"), MESSAGE)


def test_answers_to_only_some_calls_are_refused_with_the_expected_ids(store: Store) -> None:
    calls = after_a_call(store, KEEP, OF_LETTA, *CALLS[:2])
    for given in (CALLS[:1], [*CALLS[:2], CALL]):
        refusal = calls.find_refusal(AGENT, answering(*given))
        assert isinstance(refusal, InvalidRequest)
        assert CALLS[1].id in refusal.message
    assert calls.find_refusal(AGENT, answering(*CALLS[:2])) is None


def test_more_calls_than_a_note_has_are_all_answered(store: Store) -> None:
    calls = after_a_call(store, KEEP, OF_LETTA, *CALLS)
    assert calls.find_refusal(AGENT, answering(*CALLS)) is None
    assert calls.find_refusal(AGENT, answering(CALLS[0])) is not None


@pytest.mark.parametrize(
    "turn",
    [
        replace(OF_LETTA, session="letta:conv-2"),
        replace(OF_LETTA, client="other"),
        replace(OF_LETTA, answers_all_calls=False),
        replace(OF_LETTA, id="turn-1", repeated=True),
    ],
)
def test_others_and_repeats_need_not_answer(store: Store, turn: Turn) -> None:
    calls = after_a_call(store, KEEP, replace(OF_LETTA, id="turn-1"), CALLS[0])
    assert calls.find_refusal(AGENT, turn) is None


def test_a_call_for_the_end_of_a_task_is_to_be_answered_there(store: Store) -> None:
    ending = replace(CALLS[0], name="attempt_completion")
    assert after_a_call(store, KEEP, OF_LETTA, ending).find_refusal(AGENT, OF_LETTA) is not None


def test_no_answer_is_missed_after_the_wait(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    calls = after_a_call(LocalStore(tmp_path / "shared.db", clock), KEEP, OF_LETTA, CALLS[0])
    clock.now += KEEP.seconds
    assert calls.find_refusal(AGENT, OF_LETTA) is None
    assert calls.open_request(AGENT, CALL_IDS) is None
