"""What another client's message does while a client runs a tool for the agent."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bridge.errors import Busy, RequestConflict, StoreUnavailable
from bridge.locks.open_calls import OpenCalls
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import AgentEvent, Meanwhile, Message, Stopped, ToolCall, ToolSpec, Turn
from tests.clock import Clock

AGENT = "agent-1"
CALL = ToolCall("call_1", "weather", "{}")
ASKS = Turn("Ada", (Message("user", "Weather?"),), (ToolSpec("weather"),), client="roo")
OTHER = Turn("Ada", (Message("user", "Hello"),), (ToolSpec("clock"),), client="roo")
NEVER = threading.Event()
KEEP = 60.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


def called(store: Store, mode: Meanwhile = "wait") -> OpenCalls:
    """After a turn that ended with a call."""
    calls = OpenCalls(store, mode, KEEP)
    list(calls.noting(AGENT, ASKS, iter([CALL, Stopped("requires_approval")])))
    return calls


def test_another_client_has_to_wait_until_the_call_is_answered(store: Store) -> None:
    calls = called(store)
    noted = calls.in_the_way(AGENT, OTHER)
    assert noted is not None
    threading.Timer(0.1, lambda: list(calls.noting(AGENT, ASKS, iter([Stopped("end_turn")])))).start()
    calls.wait(AGENT, noted, time.monotonic() + 20, NEVER)
    assert calls.in_the_way(AGENT, OTHER) is None


def test_it_does_not_wait_for_ever(store: Store) -> None:
    calls = called(store)
    with pytest.raises(Busy) as busy:
        calls.wait(AGENT, calls.in_the_way(AGENT, OTHER) or "", time.monotonic(), NEVER)
    assert busy.value.retry_after is not None


def test_a_call_that_nobody_answers_holds_up_nobody_after_a_while(tmp_path: Path) -> None:
    clock = Clock(1000.0)
    calls = called(LocalStore(tmp_path / "shared.db", clock))
    noted = calls.in_the_way(AGENT, OTHER)
    assert noted is not None
    threading.Timer(0.1, setattr, (clock, "now", clock.now + KEEP)).start()
    calls.wait(AGENT, noted, time.monotonic() + 20, NEVER)
    assert calls.in_the_way(AGENT, OTHER) is None


def test_where_others_are_refused_they_are_told_at_once(store: Store) -> None:
    with pytest.raises(RequestConflict) as told:
        called(store, "refuse").in_the_way(AGENT, OTHER)
    assert (told.value.status, told.value.code) == (409, "tool_result_pending")


def test_where_others_close_the_call_nothing_holds_them_up(store: Store) -> None:
    assert called(store, "close").in_the_way(AGENT, OTHER) is None


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("event", [CALL, Stopped("end_turn")])
def test_an_answer_is_not_lost_when_its_calls_cannot_be_noted(event: AgentEvent) -> None:
    class Gone:
        def __getattr__(self, name: str) -> NoReturn:
            raise StoreUnavailable("gone")

    store: Any = Gone()
    assert list(OpenCalls(store, "wait", KEEP).noting(AGENT, ASKS, iter([event]))) == [event]


def test_agents_that_nobody_called_a_tool_of_are_free(store: Store) -> None:
    calls = called(store)
    assert calls.in_the_way("agent-2", OTHER) is None


@pytest.mark.parametrize(
    "turn",
    [
        Turn("Ada", (*ASKS.messages, Message("tool", "sun", tool_call_id="call_1")), client="roo"),
        Turn("Ada", (Message("assistant", tool_calls=(CALL,)), Message("user", "Never mind.")), client="roo"),
        Turn("Ada", (Message("user", "A new task."),), (ToolSpec("weather"),), client="roo"),
    ],
    ids=["its result", "a message instead of it", "a new conversation"],
)
def test_the_client_itself_is_not_held_up(store: Store, turn: Turn) -> None:
    assert called(store).in_the_way(AGENT, turn) is None


@pytest.mark.parametrize(
    "turn",
    [
        Turn("Ada", (Message("user", "Hi"),), (ToolSpec("weather"),), client="another"),
        Turn("Ada", (Message("user", "Hi"),), (ToolSpec("weather", "Tells more."),), client="roo"),
        Turn("Ada", (Message("user", "Hi"),), client="roo"),
    ],
    ids=["another key", "another tool", "no tools"],
)
def test_who_is_another_client(store: Store, turn: Turn) -> None:
    assert called(store).in_the_way(AGENT, turn) is not None
