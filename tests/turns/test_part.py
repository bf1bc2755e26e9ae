"""A request that comes again is the same turn, in the same worker and in another one, with each kind of store."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from bridge.errors import IdempotencyKeyReused, LettaUnreachable, RequestConflict, StoreUnavailable, UnknownModel
from bridge.journal import claims, recording
from bridge.journal.claims import Claim, Identity
from bridge.store.heartbeat import Heartbeat
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen, Reasoning, RunStarted, Stopped, Text, Used
from tests.parts import ANSWER, KEEP, SAME, Agent, agent, ask, new_worker, open_store, quick, read, short_lives
from tests.stores import FailingStore
from tests.waiting import SOON

__all__ = ["agent", "open_store", "quick", "short_lives"]

Open = Callable[[], Store]


def test_a_turn_runs_once_and_its_events_are_not_changed(open_store: Open, agent: Agent) -> None:
    assert read(ask(new_worker(open_store()), agent)) == ANSWER
    ((_, repeated),) = agent.runs
    assert not repeated


@pytest.mark.parametrize("workers", [1, 2])
def test_a_repeat_joins_the_turn_and_gets_it_from_its_start(open_store: Open, agent: Agent, workers: int) -> None:
    one = new_worker(open_store())
    other = one if workers == 1 else new_worker(open_store())
    agent.go_on.clear()
    part = ask(one, agent)
    assert agent.begun.wait(SOON)
    again = ask(other, agent)
    events = again.read(SOON)
    assert [next(events), next(events)] == ANSWER[:2]
    agent.go_on.set()
    assert [event for event in events if event is not None] == ANSWER[2:]
    assert read(part) == ANSWER
    assert len(agent.runs) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_repeat_gets_the_whole_answer_after_the_first_request_has_it(
    open_store: Open, agent: Agent, workers: int
) -> None:
    one = new_worker(open_store())
    other = one if workers == 1 else new_worker(open_store())
    agent.go_on.clear()
    part = ask(one, agent)
    assert agent.begun.wait(SOON)
    again = ask(other, agent)
    assert again.wait_for_first_event(SOON)
    agent.go_on.set()
    assert read(part) == ANSWER
    part.note_delivery()
    assert read(again) == ANSWER


@pytest.mark.parametrize("workers", [1, 2])
def test_an_answer_that_did_not_arrive_is_given_again(open_store: Open, agent: Agent, workers: int) -> None:
    one = new_worker(open_store())
    other = one if workers == 1 else new_worker(open_store())
    read(ask(one, agent))
    again = ask(other, agent)
    assert read(again) == ANSWER
    assert len(agent.runs) == 1
    again.note_delivery()
    read(ask(one, agent))
    assert [repeated for _, repeated in agent.runs] == [False, False]


def test_the_same_request_after_its_answer_arrived_is_a_new_turn(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    for _ in range(2):
        part = ask(worker, agent)
        assert read(part) == ANSWER
        part.note_delivery()
    assert [repeated for _, repeated in agent.runs] == [False, False]
    assert agent.runs[0][0] != agent.runs[1][0]


def test_a_client_that_asks_again_at_once_after_its_answer_begins_a_new_turn(
    open_store: Open, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MOMENT", SOON)
    worker = new_worker(open_store())
    part = ask(worker, agent)
    read(part)
    threading.Timer(0.1, part.note_delivery).start()
    assert read(ask(worker, agent)) == ANSWER
    assert len(agent.runs) == 2


def test_a_kept_turn_is_answered_again_however_often(open_store: Open, agent: Agent) -> None:
    kept = Identity("turn-k", "body-k", kept=True)
    for _ in range(3):
        part = ask(new_worker(open_store()), agent, kept)
        assert read(part) == ANSWER
        part.note_delivery()
    assert len(agent.runs) == 1


@pytest.mark.parametrize("keyed", [True, False])
def test_a_kept_turn_without_an_answer_is_attempted_again_unless_it_has_a_key(
    open_store: Open, agent: Agent, keyed: bool
) -> None:
    kept = Identity("turn-k", "body-k", kept=True, keyed=keyed)
    nothing: list[AgentEvent] = [MethodChosen("native"), Reasoning("hm"), Used(10, 0), Stopped("end_turn")]
    agent.answers = [nothing]
    for _ in range(3):
        part = ask(new_worker(open_store()), agent, kept)
        last = read(part)
        part.note_delivery()
    assert last == (nothing if keyed else ANSWER)
    assert [repeated for _, repeated in agent.runs] == ([False] if keyed else [False, True])


def test_one_key_with_two_bodies_is_refused(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    read(ask(worker, agent, Identity("key", "body-a", kept=True)))
    with pytest.raises(IdempotencyKeyReused):
        ask(worker, agent, Identity("key", "body-b", kept=True))


def test_a_turn_that_failed_is_attempted_again_and_the_attempt_knows_of_the_first(
    open_store: Open, agent: Agent
) -> None:
    agent.fails_with.append(LettaUnreachable("cut", code="stream_cut"))
    worker = new_worker(open_store())
    with pytest.raises(LettaUnreachable):
        read(ask(worker, agent))
    assert read(ask(worker, agent)) == ANSWER
    (turn, one), (same, two) = agent.runs
    assert (turn, one, two) == (same, False, True)


def test_a_turn_that_never_began_leaves_nothing(open_store: Open, agent: Agent) -> None:
    agent.fails_with.append(UnknownModel("no such agent"))
    worker = new_worker(open_store())
    with pytest.raises(UnknownModel):
        read(ask(worker, agent))
    read(ask(worker, agent))
    assert [repeated for _, repeated in agent.runs] == [False, False]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_request_that_joined_a_turn_that_fails_gets_the_same_error(
    open_store: Open, agent: Agent, workers: int
) -> None:
    agent.fails_with.append(LettaUnreachable("cut", code="stream_cut", retry_after=7))
    agent.go_on.clear()
    one = new_worker(open_store())
    part = ask(one, agent)
    assert agent.begun.wait(SOON)
    again = ask(one if workers == 1 else new_worker(open_store()), agent)
    assert again.wait_for_first_event(SOON)
    agent.go_on.set()
    for each in (part, again):
        with pytest.raises(LettaUnreachable) as raised:
            read(each)
        assert (raised.value.message, raised.value.code, raised.value.retry_after) == ("cut", "stream_cut", 7)


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.usefixtures("short_lives")
def test_a_turn_whose_worker_died_is_attempted_again(open_store: Open, agent: Agent) -> None:
    store = open_store()
    its_store = FailingStore(open_store())
    claim = Claim("turn-1", SAME.body, "token-1", Heartbeat(its_store).id)
    store.put(claims.claim_key(SAME), claim.to_text(), KEEP)
    its_store.fault = StoreUnavailable("dead")
    assert read(ask(new_worker(store), agent)) == ANSWER
    assert agent.runs == [("turn-1", True)]


def test_the_run_is_cancelled_when_the_last_client_has_left(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    agent.go_on.clear()
    one = ask(worker, agent)
    assert agent.begun.wait(SOON)
    two = ask(worker, agent)
    one.give_up()
    one.give_up()
    assert agent.cancelled == []
    two.give_up()
    assert agent.cancelled == [""]
    agent.go_on.set()


def test_a_turn_that_has_not_begun_is_not_cancelled(open_store: Open, agent: Agent) -> None:
    agent.answers = [[RunStarted("run-1"), Text("a"), Text("b")]]
    agent.go_on.clear()
    part = ask(new_worker(open_store()), agent)
    assert agent.begun.wait(SOON)
    part.give_up()
    assert agent.cancelled == []
    agent.go_on.set()


def test_a_run_is_not_cancelled_while_a_client_of_another_worker_waits(open_store: Open, agent: Agent) -> None:
    agent.go_on.clear()
    part = ask(new_worker(open_store()), agent)
    assert agent.begun.wait(SOON)
    again = ask(new_worker(open_store()), agent)
    assert again.wait_for_first_event(SOON)
    part.give_up()
    assert agent.cancelled == []
    agent.go_on.set()
    assert read(again) == ANSWER


def test_a_client_that_is_sent_away_does_not_end_the_turn(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    agent.go_on.clear()
    part = ask(worker, agent)
    assert agent.begun.wait(SOON)
    part.note_sent_away()
    part.give_up()
    agent.go_on.set()
    assert read(ask(worker, agent)) == ANSWER
    assert (len(agent.runs), agent.cancelled) == (1, [])


def test_a_repeat_of_a_cancelled_turn_is_a_new_attempt(open_store: Open, agent: Agent) -> None:
    """Its end is waited for, and then it is attempted again."""
    worker = new_worker(open_store())
    agent.answers = [[MethodChosen("native"), RunStarted("run-1"), Text("never said")], ANSWER]
    agent.fails_with.append(LettaUnreachable("cancelled", code="run_cancelled"))
    agent.go_on.clear()
    part = ask(worker, agent)
    assert agent.begun.wait(SOON)
    part.give_up()
    assert agent.cancelled == ["run-1"]
    again = ask(worker, agent)
    agent.go_on.set()
    assert [event for event in read(again) if isinstance(event, Text)] == [Text("Hel"), Text("lo")]
    assert [repeated for _, repeated in agent.runs] == [False, True]


def test_the_first_sign_is_that_of_the_new_attempt(open_store: Open, agent: Agent) -> None:
    worker = new_worker(open_store())
    agent.answers = [[MethodChosen("native"), RunStarted("run-1"), Text("never said")], ANSWER]
    agent.fails_with.append(LettaUnreachable("cancelled", code="run_cancelled"))
    agent.go_on.clear()
    part = ask(worker, agent)
    assert agent.begun.wait(SOON)
    part.give_up()
    again = ask(worker, agent)
    agent.go_on.set()
    assert again.wait_for_first_event(SOON)
    assert again.chosen == MethodChosen("native")
    assert len(agent.runs) == 2


def test_an_answer_that_is_too_large_is_not_kept(
    open_store: Open, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_CHARACTERS", 4)
    worker = new_worker(open_store())
    assert read(ask(worker, agent)) == ANSWER
    assert read(ask(worker, agent)) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, True]


def test_a_keyed_turn_whose_answer_is_too_large_to_be_followed_is_a_conflict(
    open_store: Open, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "MOST_CHARACTERS", 4)
    keyed = Identity("key", "body", kept=True)
    agent.go_on.clear()
    part = ask(new_worker(open_store()), agent, keyed)
    assert agent.begun.wait(SOON)
    again = ask(new_worker(open_store()), agent, keyed)
    assert again.wait_for_first_event(SOON)
    agent.go_on.set()
    assert read(part) == ANSWER
    with pytest.raises(RequestConflict):
        read(again)


def test_an_answer_is_kept_only_for_a_while(open_store: Open, agent: Agent) -> None:
    for _ in range(2):
        read(ask(new_worker(open_store(), keep=0.05), agent))
        threading.Event().wait(0.1)
    assert [repeated for _, repeated in agent.runs] == [False, False]
