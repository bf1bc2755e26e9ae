"""While a client runs a tool for the agent, another client's message waits, is refused, or closes the call."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from bridge.errors import Busy, RequestConflict, StoreUnavailable
from bridge.locks.open_calls import OpenCalls
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import Meanwhile, NewInput, ToolSpec, Turn, UserMessage
from tests.clock import Clock
from tests.stores import FailingStore

AGENT = "agent-1"
CALL = "call_1"
HELLO = NewInput((UserMessage("Hello"),))
ASKS = Turn("Ada", HELLO, (ToolSpec("weather"),), client="roo")
OTHER = Turn("Ada", HELLO, (ToolSpec("clock"),), client="roo")
NEVER = threading.Event()
KEEP = 60.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


def after_a_call(store: Store, mode: Meanwhile = "wait") -> OpenCalls:
    """Returns the open calls after a turn that ended with a call."""
    calls = OpenCalls(store, mode, KEEP)
    calls.note(AGENT, ASKS, [CALL])
    return calls


def test_another_client_has_to_wait_until_the_call_is_answered(store: Store) -> None:
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
    threading.Timer(0.1, setattr, (clock, "now", clock.now + KEEP)).start()
    calls.wait_until_closed(AGENT, noted, time.monotonic() + 20, NEVER)
    assert calls.find_calls_to_wait_for(AGENT, OTHER) is None


def test_with_refuse_other_clients_get_409_at_once(store: Store) -> None:
    with pytest.raises(RequestConflict) as refused:
        after_a_call(store, "refuse").find_calls_to_wait_for(AGENT, OTHER)
    assert (refused.value.status, refused.value.code) == (409, "tool_result_pending")


def test_with_close_no_client_waits(store: Store) -> None:
    assert after_a_call(store, "close").find_calls_to_wait_for(AGENT, OTHER) is None


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.parametrize("calls", [[CALL], []])
def test_a_turn_does_not_fail_when_its_calls_cannot_be_noted(
    store: Store, calls: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    failing = FailingStore(store, fault=StoreUnavailable("gone"))
    OpenCalls(failing, "wait", KEEP).note(AGENT, ASKS, calls)
    assert "gone" in caplog.text


def test_an_agent_without_an_open_call_is_free(store: Store) -> None:
    calls = after_a_call(store)
    assert calls.find_calls_to_wait_for("agent-2", OTHER) is None


@pytest.mark.parametrize(
    "turn",
    [
        Turn("Ada", HELLO, known_calls=frozenset([CALL]), client="roo"),
        Turn("Ada", HELLO, (ToolSpec("weather"),), client="roo"),
    ],
    ids=["it knows the call", "a new conversation with the same tools"],
)
def test_the_client_itself_does_not_wait(store: Store, turn: Turn) -> None:
    assert after_a_call(store).find_calls_to_wait_for(AGENT, turn) is None


@pytest.mark.parametrize(
    "turn",
    [
        Turn("Ada", HELLO, (ToolSpec("weather"),), client="another"),
        Turn("Ada", HELLO, (ToolSpec("weather", "Tells more."),), client="roo"),
        Turn("Ada", HELLO, client="roo"),
    ],
    ids=["another key", "another tool", "no tools"],
)
def test_another_key_or_another_toolset_is_another_client(store: Store, turn: Turn) -> None:
    assert after_a_call(store).find_calls_to_wait_for(AGENT, turn) is not None
