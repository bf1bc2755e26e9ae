"""It is noted whose a call is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.locks.call_clients import KEPT, CallClients
from bridge.store.sqlite import LocalStore
from bridge.turn import Message, ToolCall
from tests.asked import turn_of
from tests.clock import Clock

MESSAGES = [f"message-12345678-1234-1234-1234-12345678900{number}" for number in range(3)]
CALLS = [ToolCall(CALL_IDS.id_in_message(MESSAGES[0], place), "weather", "{}") for place in range(12)]
ROO = replace(turn_of(Message("user", "Hello"), client="roo"), call_ids=CALL_IDS)
OTHER = replace(ROO, client="other")


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def clients(tmp_path: Path, clock: Clock) -> CallClients:
    made = CallClients(LocalStore(tmp_path / "shared.db", clock))
    made.note(ROO, CALLS)
    return made


def test_all_calls_of_a_message_are_their_clients(clients: CallClients) -> None:
    ids = [call.id for call in CALLS]
    assert clients.calls_of_others(OTHER, ids) == ids
    assert clients.calls_of_others(ROO, ids) == []
    assert clients.is_of_another("other", MESSAGES[0])


def test_calls_of_which_nothing_is_known_are_anybodys(clients: CallClients) -> None:
    ids = ["call_1", CALL_IDS.new_ending_id(), CALL_IDS.id_in_message(MESSAGES[1], 0)]
    assert clients.calls_of_others(OTHER, ids) == []


def test_without_keys_calls_are_anybodys(clients: CallClients) -> None:
    assert clients.calls_of_others(replace(ROO, client=""), [CALLS[0].id]) == []
    second = ToolCall(CALL_IDS.id_in_message(MESSAGES[2], 0), "weather", "{}")
    clients.note(replace(ROO, client=""), [second])
    assert clients.calls_of_others(OTHER, [second.id]) == []


def test_a_call_is_its_clients_for_a_week(clients: CallClients, clock: Clock) -> None:
    clock.now += KEPT - 1
    assert clients.is_of_another("other", MESSAGES[0])
    clock.now += 1
    assert not clients.is_of_another("other", MESSAGES[0])
