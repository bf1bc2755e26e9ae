from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bridge.errors import StoreUnavailable
from bridge.journal import lingering
from bridge.journal.lingering import LingeringTurns, is_asked_to_end
from bridge.store.port import Store
from bridge.turn import Message, NewInput, Turn, UserMessage
from tests.parts import open_store
from tests.stores import FailingStore

__all__ = ["open_store"]

Open = Callable[[], Store]
AGENT = "agent-1"
EARLIER = 1_000.0


@pytest.fixture(autouse=True)
def looks_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LOOK", 0.0)


def turn(*said: str, **fields: object) -> Turn:
    transcript = tuple(Message("user", text) for text in said)
    fields = {"id": f"turn-{len(said)}", **fields}
    return replace(Turn("Ada", NewInput((UserMessage(said[-1]),))), transcript=transcript, **fields)  # type: ignore[arg-type]


LATER = turn("Hello", "Never mind")


@pytest.mark.parametrize(
    ("lingers", "later", "is_ended"),
    [
        (turn("Hello"), LATER, True),
        (turn("Hello", session="s"), turn("Something else", "And more", session="s"), True),
        (turn("Hello", session="s"), replace(LATER, session="t"), False),
        (turn("Hello"), turn("Good morning", "Never mind"), False),
        (turn("Hello"), turn("Hello", id="turn-of-another-person"), False),
        (turn("Hello"), replace(LATER, client="other"), False),
        (turn("Hello", id=LATER.id), LATER, False),
    ],
)
def test_a_turn_ends_only_the_earlier_turns_of_its_conversation(
    open_store: Open, lingers: Turn, later: Turn, is_ended: bool
) -> None:
    store = open_store()
    LingeringTurns(store, 60.0).note(AGENT, lingers, "token-1", EARLIER)
    LingeringTurns(open_store(), 60.0).earlier_turns_ender(AGENT, later)()
    assert is_asked_to_end(store, "token-1") is is_ended


def test_a_turn_does_not_end_one_that_began_after_it(open_store: Open) -> None:
    store = open_store()
    turns = LingeringTurns(store, 60.0)
    end_earlier_turns = turns.earlier_turns_ender(AGENT, LATER)
    turns.note(AGENT, turn("Hello"), "token-1", 1e12)
    end_earlier_turns()
    assert not is_asked_to_end(store, "token-1")


def test_a_turn_of_another_agent_is_not_ended(open_store: Open) -> None:
    store = open_store()
    turns = LingeringTurns(store, 60.0)
    turns.note("agent-2", turn("Hello"), "token-1", EARLIER)
    turns.earlier_turns_ender(AGENT, LATER)()
    assert not is_asked_to_end(store, "token-1")


def test_a_waiting_turn_sees_also_those_that_lose_their_clients_later(open_store: Open) -> None:
    store = open_store()
    turns = LingeringTurns(store, 60.0)
    end_earlier_turns = turns.earlier_turns_ender(AGENT, LATER)
    end_earlier_turns()
    turns.note(AGENT, turn("Hello"), "token-1", EARLIER)
    end_earlier_turns()
    assert is_asked_to_end(store, "token-1")


def test_a_waiting_turn_does_not_look_all_the_time(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LOOK", 60.0)
    store = open_store()
    turns = LingeringTurns(store, 60.0)
    end_earlier_turns = turns.earlier_turns_ender(AGENT, LATER)
    end_earlier_turns()
    turns.note(AGENT, turn("Hello"), "token-1", EARLIER)
    end_earlier_turns()
    assert not is_asked_to_end(store, "token-1")


@pytest.mark.parametrize("noted", ["", "null", "[]", "{}", '{"turn": "t", "token": "k", "began": 1, "mark": {}}'])
def test_a_note_of_another_form_is_ignored(open_store: Open, noted: str) -> None:
    store = open_store()
    store.append(f"lingering:{AGENT}", noted, 32, 60.0)
    turns = LingeringTurns(store, 60.0)
    turns.note(AGENT, turn("Hello"), "token-1", EARLIER)
    turns.earlier_turns_ender(AGENT, LATER)()
    assert is_asked_to_end(store, "token-1")


def test_a_store_that_fails_does_not_end_the_turn_that_waits(
    open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    turns = LingeringTurns(FailingStore(open_store(), fault=StoreUnavailable("gone")), 60.0)
    turns.earlier_turns_ender(AGENT, LATER)()
    assert "gone" in caplog.text
