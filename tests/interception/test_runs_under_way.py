"""Runs that go on without a bridge are waited for, whether or not the server says that they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest

from bridge.chats.lists import MAIN
from bridge.errors import ClientGone
from bridge.interception import runs_under_way
from bridge.interception.runs_under_way import (
    PATIENCE,
    REST,
    REST_AFTER_CHANGE,
    wait_for_earlier_runs,
    wait_for_runs,
    wait_silently,
)
from bridge.letta.capabilities import read_features
from bridge.letta.gateway import CHATS_ENTRY, Agent, AgentChange, StoredMessage
from bridge.locks.agents import AgentHold, TurnEnd
from bridge.trace import Trace, set_current_trace
from bridge.turn import Notice
from tests.fake_agent import new_id
from tests.fakes import FakeGateway

WAITING = Notice("waiting for a run under way")


class Pauses(Event):
    """Ends the agent's runs at the pause of this number, and does not really pause."""

    def __init__(self, letta: FakeGateway, end: int) -> None:
        super().__init__()
        self._pauses: Iterator[int] = iter(range(1, end + 1))
        self._letta, self._end = letta, end

    def wait(self, timeout: float | None = None) -> bool:
        if next(self._pauses) == self._end:
            self._letta.under_way.clear()
        return self.is_set()


def waited(letta: FakeGateway, gone: Event) -> list[Notice]:
    """Waits for the runs of the agent. Returns what the client is told."""
    return list(wait_for_runs(letta, letta.agents()[0].id, gone))


def test_a_run_that_goes_on_is_waited_for_and_the_client_is_told_once(letta: FakeGateway) -> None:
    letta.under_way.append("run-1")
    trace = Trace()
    set_current_trace(trace)
    assert waited(letta, Pauses(letta, 3)) == [WAITING]
    assert [*trace.waits] == ["a run under way"]
    assert waited(letta, Event()) == []
    assert letta.cancelled == []


@pytest.mark.parametrize(("version", "cancelled"), [("0.16.1", True), ("0.14.0", True), ("0.13.0", False)])
def test_a_run_that_does_not_end_is_cancelled_later_where_that_does_not_stop_it(
    monkeypatch: pytest.MonkeyPatch, version: str, cancelled: bool
) -> None:
    letta = FakeGateway(read_features(version, {}))
    agent = letta.has_agent("Ada")
    monkeypatch.setattr(runs_under_way, "PATIENCE", 0)
    letta.under_way.append("run-1")
    waited(letta, Pauses(letta, 3))
    assert letta.cancelled == ([(agent.id, "run-1")] if cancelled else [])
    letta.under_way.append("run-1")
    monkeypatch.setattr(runs_under_way, "LONGER_PATIENCE", 0)
    waited(letta, Pauses(letta, 3))
    assert letta.cancelled[-1] == (agent.id, "run-1")


def test_a_run_is_not_waited_for_if_the_client_has_gone(letta: FakeGateway) -> None:
    letta.under_way.append("run-1")
    gone = Event()
    gone.set()
    waited(letta, gone)
    assert letta.cancelled == []


# --- where nobody sees the run ------------------------------------------------------------------------


class Time:
    """Passes only when somebody waits. `at`: what happens at which second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: dict[float, Callable[[], object]] = {}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for due in [due for due in self.at if due <= self.now]:
            self.at.pop(due)()


class Gone(Event):
    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time

    def wait(self, timeout: float | None = None) -> bool:
        self._time.sleep(timeout or 0.0)
        return self.is_set()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(runs_under_way, "time", time)
    return time


class Old:
    """An agent of a server that does not say which runs are under way."""

    def __init__(self, time: Time, version: str) -> None:
        self.letta = FakeGateway(read_features(version, {}))
        self.agent: Agent = self.letta.has_agent("Ada", "memgpt_agent")
        self.gone = Gone(time)

    def stores(self) -> None:
        self.letta._agents[self.agent.id].store(StoredMessage(new_id("message"), "assistant_message", text="Hi"))

    def waits(self, previous: TurnEnd, *, arrived: bool = False) -> Agent:
        self.hold = AgentHold(previous, lambda: True)
        waiting = wait_for_earlier_runs(self.letta, self.agent, self.hold, self.gone, lambda: arrived)
        return wait_silently(waiting)


@pytest.fixture
def old(time: Time) -> Old:
    return Old(time, "0.6.54")


def test_a_lost_run_is_waited_for_until_its_messages_have_come(old: Old, time: Time) -> None:
    time.at = {4.0: old.stores, 6.0: old.stores}
    assert len(old.waits("lost").message_ids) == 3
    assert 6.0 + REST_AFTER_CHANGE <= time.now < PATIENCE


def test_a_lost_run_that_stores_nothing_is_given_up(old: Old, time: Time) -> None:
    assert old.waits("lost") == old.agent
    assert old.hold.earlier_runs_ended
    assert PATIENCE <= time.now < PATIENCE + 2 * REST_AFTER_CHANGE


def test_a_lost_run_whose_messages_are_stored_is_soon_over(old: Old, time: Time) -> None:
    old.waits("lost", arrived=True)
    assert time.now == REST_AFTER_CHANGE


def test_a_lost_run_that_ended_with_its_connection_is_soon_over(time: Time) -> None:
    Old(time, "0.8.17").waits("lost")
    assert time.now == REST_AFTER_CHANGE


def test_a_client_that_leaves_ends_the_wait(old: Old, time: Time) -> None:
    time.at = {2.0: old.gone.set}
    with pytest.raises(ClientGone):
        old.waits("lost")
    assert time.now == 2.0
    assert not old.hold.earlier_runs_ended


@pytest.mark.parametrize("previous", ["ended", "failed", "unknown"])
def test_a_run_that_is_over_is_not_waited_for(old: Old, time: Time, previous: TurnEnd) -> None:
    assert old.waits(previous) == old.agent
    assert time.now == 0


def test_with_chats_the_context_must_rest_if_nothing_is_known_of_the_turn_before(old: Old, time: Time) -> None:
    lists = {"agent": old.agent.id, "current": "a", "chats": {"a": {}, MAIN: {"ids": ""}}}
    old.agent = old.letta.change_agent(old.agent.id, AgentChange(metadata={CHATS_ENTRY: lists}))
    old.waits("failed")
    assert time.now == 0
    old.waits("unknown")
    assert time.now == REST
