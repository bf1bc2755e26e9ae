"""A request that comes again is the same turn. For each store; two workers are two journals in one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import IdempotencyKeyReused, LettaUnreachable, RequestConflict, StoreUnavailable, UnknownModel
from bridge.journal import journal, recording
from bridge.journal.batches import Batch, End, from_text, to_text
from bridge.journal.journal import Identity, Journal
from bridge.store.port import Store
from bridge.turn import (
    AgentCall,
    AgentEvent,
    AgentReturn,
    MethodChosen,
    Reasoning,
    RunStarted,
    Stopped,
    Text,
    ToolCall,
    Used,
)
from tests.journals import ANSWER, KEEP, SAME, Agent, agent, ask, open_store, quick, read, short_lives
from tests.stores import shared_store
from tests.waiting import SOON

__all__ = ["agent", "open_store", "quick", "short_lives"]


def test_the_turn_itself_is_run_once_and_as_it_is(open_store: Callable[[], Store], agent: Agent) -> None:
    _, feed = ask(Journal(open_store(), KEEP), agent)
    assert read(feed) == ANSWER
    ((_, repeated),) = agent.runs
    assert not repeated


@pytest.mark.parametrize("workers", [1, 2])
def test_a_repeat_joins_the_turn_and_gets_it_from_its_start(
    open_store: Callable[[], Store], agent: Agent, workers: int
) -> None:
    first = Journal(open_store(), KEEP)
    second = first if workers == 1 else Journal(open_store(), KEEP)
    agent.go_on.clear()
    _, feed = ask(first, agent)
    assert agent.begun.wait(SOON)
    _, again = ask(second, agent)
    reader = again.read(SOON)
    assert [next(reader), next(reader)] == ANSWER[:2]
    agent.go_on.set()
    assert read(again) == read(feed) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_the_others_get_the_whole_answer_also_when_the_first_has_it_already(
    open_store: Callable[[], Store], agent: Agent, workers: int
) -> None:
    first = Journal(open_store(), KEEP)
    second = first if workers == 1 else Journal(open_store(), KEEP)
    agent.go_on.clear()
    attempt, feed = ask(first, agent)
    assert agent.begun.wait(SOON)
    _, again = ask(second, agent)
    next(again.read(SOON))
    agent.go_on.set()
    assert read(feed) == ANSWER
    attempt.delivered()
    assert read(again) == ANSWER


@pytest.mark.parametrize("workers", [1, 2])
def test_an_answer_that_did_not_arrive_is_given_again(
    open_store: Callable[[], Store], agent: Agent, workers: int
) -> None:
    first = Journal(open_store(), KEEP)
    second = first if workers == 1 else Journal(open_store(), KEEP)
    read(ask(first, agent)[1])
    attempt, again = ask(second, agent)
    assert read(again) == ANSWER
    assert len(agent.runs) == 1
    attempt.delivered()
    read(ask(first, agent)[1])
    assert [repeated for _, repeated in agent.runs] == [False, False]


def test_the_same_request_after_its_answer_arrived_is_a_new_turn(open_store: Callable[[], Store], agent: Agent) -> None:
    store = open_store()
    worker = Journal(store, KEEP)
    for _ in range(2):
        attempt, feed = ask(worker, agent)
        assert read(feed) == ANSWER
        attempt.delivered()
    assert [repeated for _, repeated in agent.runs] == [False, False]
    assert agent.runs[0][0] != agent.runs[1][0]


def test_a_client_that_asks_again_in_the_moment_it_has_its_answer_begins_a_new_turn(
    open_store: Callable[[], Store], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOMENT", SOON)
    worker = Journal(open_store(), KEEP)
    attempt, feed = ask(worker, agent)
    read(feed)
    _, again = ask(worker, agent)
    threading.Timer(0.1, attempt.delivered).start()
    assert read(again) == ANSWER
    assert len(agent.runs) == 2


def test_a_kept_turn_is_answered_again_however_often(open_store: Callable[[], Store], agent: Agent) -> None:
    kept = Identity("turn-k", "body-k", kept=True)
    for _ in range(3):
        attempt, feed = ask(Journal(open_store(), KEEP), agent, kept)
        assert read(feed) == ANSWER
        attempt.delivered()
    assert len(agent.runs) == 1


@pytest.mark.parametrize("keyed", [True, False])
def test_a_kept_turn_in_which_nothing_was_said_is_attempted_anew_unless_it_has_a_key(
    open_store: Callable[[], Store], agent: Agent, keyed: bool
) -> None:
    kept = Identity("turn-k", "body-k", kept=True, keyed=keyed)
    nothing = [MethodChosen("native"), Reasoning("hm"), Used(10, 0), Stopped("end_turn")]
    agent.answers = [nothing]
    for _ in range(3):
        attempt, feed = ask(Journal(open_store(), KEEP), agent, kept)
        last = read(feed)
        attempt.delivered()
    assert last == (nothing if keyed else ANSWER)
    assert [repeated for _, repeated in agent.runs] == ([False] if keyed else [False, True])


def test_a_key_does_not_stand_for_two_bodies(open_store: Callable[[], Store], agent: Agent) -> None:
    worker = Journal(open_store(), KEEP)
    read(ask(worker, agent, Identity("key", "body-a", kept=True))[1])
    with pytest.raises(IdempotencyKeyReused):
        read(ask(worker, agent, Identity("key", "body-b", kept=True))[1])


def test_a_turn_that_failed_is_attempted_anew_and_knows_of_the_first_attempt(
    open_store: Callable[[], Store], agent: Agent
) -> None:
    agent.fails_with.append(LettaUnreachable("cut", code="stream_cut"))
    worker = Journal(open_store(), KEEP)
    with pytest.raises(LettaUnreachable):
        read(ask(worker, agent)[1])
    assert read(ask(worker, agent)[1]) == ANSWER
    (turn, first), (same, second) = agent.runs
    assert (turn, first, second) == (same, False, True)


def test_a_turn_that_never_began_leaves_nothing(open_store: Callable[[], Store], agent: Agent) -> None:
    agent.fails_with.append(UnknownModel("no such agent"))
    worker = Journal(open_store(), KEEP)
    with pytest.raises(UnknownModel):
        read(ask(worker, agent)[1])
    read(ask(worker, agent)[1])
    assert [repeated for _, repeated in agent.runs] == [False, False]


@pytest.mark.parametrize("workers", [1, 2])
def test_who_joined_a_turn_that_fails_is_told_the_same(
    open_store: Callable[[], Store], agent: Agent, workers: int
) -> None:
    agent.fails_with.append(LettaUnreachable("cut", code="stream_cut", retry_after=7))
    agent.go_on.clear()
    first = Journal(open_store(), KEEP)
    _, feed = ask(first, agent)
    assert agent.begun.wait(SOON)
    _, again = ask(first if workers == 1 else Journal(open_store(), KEEP), agent)
    next(again.read(SOON))
    agent.go_on.set()
    for each in (feed, again):
        with pytest.raises(LettaUnreachable) as told:
            read(each)
        assert (told.value.message, told.value.code, told.value.retry_after) == ("cut", "stream_cut", 7)


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.usefixtures("short_lives")
def test_a_turn_whose_worker_died_is_attempted_anew(open_store: Callable[[], Store], agent: Agent) -> None:
    dead = Journal(open_store(), KEEP)
    claim = recording.Claim("turn-1", SAME.body, "token-1", dead.worker.id)
    store = open_store()
    store.put(f"turn:{SAME.name}", claim.text(), KEEP)
    dead.worker._store = Broken()
    _, again = ask(Journal(store, KEEP), agent)
    assert read(again) == ANSWER
    assert agent.runs == [("turn-1", True)]


def test_nobody_waits_any_more_when_the_last_client_has_left(open_store: Callable[[], Store], agent: Agent) -> None:
    worker = Journal(open_store(), KEEP)
    agent.go_on.clear()
    first, feed = ask(worker, agent)
    assert agent.begun.wait(SOON)
    second, again = ask(worker, agent)
    next(again.read(SOON))
    assert not first.leave()
    assert not first.leave()
    assert second.leave()
    agent.go_on.set()
    read(feed)


def test_a_client_of_another_worker_counts_too(open_store: Callable[[], Store], agent: Agent) -> None:
    agent.go_on.clear()
    first, feed = ask(Journal(open_store(), KEEP), agent)
    assert agent.begun.wait(SOON)
    _, again = ask(Journal(open_store(), KEEP), agent)
    next(again.read(SOON))
    assert not first.leave()
    agent.go_on.set()
    assert read(again) == read(feed) == ANSWER


def test_a_turn_that_was_given_up_and_cancelled_is_not_joined(open_store: Callable[[], Store], agent: Agent) -> None:
    """Its end is waited for, and then it is attempted anew."""
    worker = Journal(open_store(), KEEP)
    agent.answers = [[MethodChosen("native"), RunStarted("run-1"), Text("never said")], ANSWER]
    agent.fails_with.append(LettaUnreachable("cancelled", code="run_cancelled"))
    agent.go_on.clear()
    first, _ = ask(worker, agent)
    assert agent.begun.wait(SOON)
    assert first.leave()
    _, again = ask(worker, agent)
    agent.go_on.set()
    assert [event for event in read(again) if isinstance(event, Text)] == [Text("Hel"), Text("lo")]
    assert [repeated for _, repeated in agent.runs] == [False, True]


def test_an_answer_that_is_too_large_is_not_kept(
    open_store: Callable[[], Store], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_CHARACTERS", 4)
    worker = Journal(open_store(), KEEP)
    assert read(ask(worker, agent)[1]) == ANSWER
    assert read(ask(worker, agent)[1]) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, True]


def test_a_keyed_turn_that_can_not_be_joined_is_in_the_way(
    open_store: Callable[[], Store], agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_CHARACTERS", 4)
    keyed = Identity("key", "body", kept=True)
    agent.go_on.clear()
    _, feed = ask(Journal(open_store(), KEEP), agent, keyed)
    assert agent.begun.wait(SOON)
    _, again = ask(Journal(open_store(), KEEP), agent, keyed)
    next(again.read(SOON))
    agent.go_on.set()
    assert read(feed) == ANSWER
    with pytest.raises(RequestConflict):
        read(again)


def test_an_answer_is_kept_for_its_time_only(open_store: Callable[[], Store], agent: Agent) -> None:
    read(ask(Journal(open_store(), 0.05), agent)[1])
    threading.Event().wait(0.1)
    read(ask(Journal(open_store(), 0.05), agent)[1])
    assert [repeated for _, repeated in agent.runs] == [False, False]


class Broken:
    """A store that fails."""

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> None:
            raise StoreUnavailable("gone")

        return fail


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_without_its_store_no_turn_begins(agent: Agent) -> None:
    with pytest.raises(StoreUnavailable):
        read(ask(Journal(Broken(), KEEP), agent)[1])
    assert agent.runs == []


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_store_that_fails_in_mid_turn_does_not_end_it(tmp_path: Path, agent: Agent) -> None:
    with shared_store("local", tmp_path) as open_one:
        worker = Journal(open_one(), KEEP)
        agent.go_on.clear()
        attempt, feed = ask(worker, agent)
        assert agent.begun.wait(SOON)
        worker.worker._store = worker.store = Broken()
        agent.go_on.set()
        assert read(feed) == ANSWER
        attempt.delivered()


EVERY_KIND: list[AgentEvent] = [
    MethodChosen("native"),
    Reasoning("hm"),
    Text("\ud800 ä"),
    AgentCall("message-1", "call_1", "search", "{}", True, 2),
    AgentReturn("message-1", "call_1", "found", False),
    ToolCall("call_2", "read", "{}"),
    RunStarted("run-1"),
    Used(1, 2, 3, "step-1"),
    Stopped("end_turn"),
]


def test_every_event_comes_back_from_the_store_as_it_was() -> None:
    assert {type(event) for event in EVERY_KIND} == set(AgentEvent.__args__)
    assert from_text(to_text(EVERY_KIND)) == Batch(tuple(EVERY_KIND))
    assert from_text(to_text([], End("well"), 7)) == Batch((), End("well"), 7)


def test_the_moment_in_which_an_answer_is_noted_is_short() -> None:
    assert journal.MOMENT <= 1
