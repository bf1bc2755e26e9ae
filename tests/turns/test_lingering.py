"""A turn whose clients have left goes on for a while, in one worker and in several, with each kind of store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from bridge.errors import ClientGone, LettaUnreachable, StoreUnavailable
from bridge.journal import follower
from bridge.journal.lingering import ask_to_end
from bridge.store.port import Store
from bridge.turn import AgentEvent, MethodChosen, RunStarted, Text
from bridge.turns import lingering
from bridge.turns.life import AttemptState
from bridge.turns.part import Part
from tests.parts import ANSWER, Agent, agent, ask, new_worker, open_store, quick, read, short_lives
from tests.stores import FailingStore
from tests.waiting import SOON, until

__all__ = ["agent", "open_store", "quick", "short_lives"]

Open = Callable[[], Store]
SILENT: list[AgentEvent] = [MethodChosen("native"), RunStarted("run-1"), Text("Hel"), Text("lo")]

pytestmark = pytest.mark.fault("clients that hang up")


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LOOK", 0.02)
    monkeypatch.setattr(follower, "FOLLOWED", 0.3)


@pytest.fixture
def silent(agent: Agent) -> Agent:
    """The agent says nothing before it goes on."""
    agent.answers = [SILENT]
    agent.go_on.clear()
    return agent


def shown(part: Part) -> None:
    """Reads the beginning of the answer, as a stream does that sends it to its client."""
    next(event for event in part.read(SOON) if isinstance(event, Text))
    part.note_shown()


def token_of(part: Part) -> str:
    assert part._claim is not None
    return part._claim.token


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_that_asks_again_and_again_gets_its_answer_of_one_run(
    open_store: Open, silent: Agent, workers: int
) -> None:
    one = new_worker(open_store(), repeat_wait=SOON)
    other = one if workers == 1 else new_worker(open_store(), repeat_wait=SOON)
    for worker in (one, other, one, other):
        part = ask(worker, silent)
        assert silent.begun.wait(SOON)
        part.give_up()
    last = ask(other, silent)
    silent.go_on.set()
    assert read(last) == SILENT
    assert (len(silent.runs), silent.cancelled) == (1, [])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_that_asks_again_after_the_end_gets_the_recorded_answer(
    open_store: Open, silent: Agent, workers: int
) -> None:
    one = new_worker(open_store(), repeat_wait=SOON)
    part = ask(one, silent)
    assert silent.begun.wait(SOON)
    part.give_up()
    silent.go_on.set()
    until(lambda: part._stream.end)
    assert read(ask(one if workers == 1 else new_worker(open_store()), silent)) == SILENT
    assert len(silent.runs) == 1


def test_a_run_without_a_repeat_is_cancelled_after_the_wait(open_store: Open, silent: Agent) -> None:
    part = ask(new_worker(open_store(), repeat_wait=0.3), silent)
    assert silent.begun.wait(SOON)
    left = time.monotonic()
    part.give_up()
    assert until(lambda: silent.cancelled) == ["run-1"]
    assert time.monotonic() - left >= 0.3
    silent.go_on.set()


def test_each_repeat_begins_the_wait_again(open_store: Open, silent: Agent) -> None:
    worker = new_worker(open_store(), repeat_wait=0.6)
    part = ask(worker, silent)
    assert silent.begun.wait(SOON)
    for _ in range(4):
        part.give_up()
        threading.Event().wait(0.3)
        part = ask(worker, silent)
    assert silent.cancelled == []
    part.give_up()
    assert until(lambda: silent.cancelled) == ["run-1"]
    silent.go_on.set()


def test_a_client_that_was_shown_the_beginning_stops_the_run_at_once(open_store: Open, agent: Agent) -> None:
    agent.go_on.clear()
    part = ask(new_worker(open_store(), repeat_wait=SOON), agent)
    shown(part)
    part.give_up()
    assert agent.cancelled == [""]
    agent.go_on.set()


def test_a_client_that_has_read_the_answer_but_was_shown_nothing_may_come_back(open_store: Open, agent: Agent) -> None:
    agent.go_on.clear()
    worker = new_worker(open_store(), repeat_wait=SOON)
    part = ask(worker, agent)
    next(event for event in part.read(SOON) if isinstance(event, Text))
    part.give_up()
    again = ask(worker, agent)
    agent.go_on.set()
    assert read(again) == ANSWER
    assert agent.cancelled == []


def test_the_end_of_a_worker_cancels_the_run_at_once(open_store: Open, silent: Agent) -> None:
    part = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    assert silent.begun.wait(SOON)
    part.break_off()
    assert silent.cancelled == ["run-1"]
    silent.go_on.set()


def test_the_end_of_a_worker_does_not_end_the_run_of_another_worker(open_store: Open, silent: Agent) -> None:
    one = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    assert silent.begun.wait(SOON)
    two = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    one.give_up()
    two.break_off()
    three = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    silent.go_on.set()
    assert read(three) == SILENT
    assert silent.cancelled == []


def test_a_later_turn_of_the_conversation_ends_the_run_from_any_worker(open_store: Open, silent: Agent) -> None:
    store = open_store()
    part = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    assert silent.begun.wait(SOON)
    part.give_up()
    assert until(lambda: silent.lingering) == [token_of(part)]
    ask_to_end(store, token_of(part))
    assert until(lambda: silent.cancelled, 2.0) == ["run-1"]
    silent.go_on.set()


def test_a_run_with_a_client_is_not_ended_by_a_later_turn(open_store: Open, silent: Agent) -> None:
    store = open_store()
    worker = new_worker(store, repeat_wait=SOON)
    part = ask(worker, silent)
    assert silent.begun.wait(SOON)
    part.give_up()
    again = ask(worker, silent)
    ask_to_end(store, token_of(again))
    threading.Event().wait(0.3)
    silent.go_on.set()
    assert read(again) == SILENT
    assert silent.cancelled == []


def test_a_client_of_another_worker_that_stops_the_answer_ends_the_run(open_store: Open, agent: Agent) -> None:
    agent.go_on.clear()
    one = ask(new_worker(open_store(), repeat_wait=SOON), agent)
    assert agent.begun.wait(SOON)
    two = ask(new_worker(open_store(), repeat_wait=SOON), agent)
    shown(two)
    one.give_up()
    threading.Event().wait(0.2)
    assert agent.cancelled == []
    two.give_up()
    assert until(lambda: agent.cancelled, 3.0) == [""]
    agent.go_on.set()


def test_a_client_of_another_worker_that_leaves_early_has_the_same_wait(open_store: Open, silent: Agent) -> None:
    one = ask(new_worker(open_store(), repeat_wait=0.5), silent)
    assert silent.begun.wait(SOON)
    two = ask(new_worker(open_store(), repeat_wait=0.5), silent)
    one.give_up()
    threading.Event().wait(0.8)
    assert silent.cancelled == []
    two.give_up()
    assert until(lambda: silent.cancelled, 3.0) == ["run-1"]
    silent.go_on.set()


def test_a_turn_that_still_waits_keeps_its_place_for_a_repeat_and_does_not_run_without(
    open_store: Open, agent: Agent
) -> None:
    agent.answers = [[RunStarted("run-1"), Text("a"), MethodChosen("native")], ANSWER]
    agent.go_on.clear()
    worker = new_worker(open_store(), repeat_wait=0.3)
    part = ask(worker, agent)
    assert agent.begun.wait(SOON)
    part.give_up()
    attempt = part._attempt
    assert attempt is not None
    assert attempt.life.state is AttemptState.WAITING_ALONE
    assert until(attempt.gone.is_set)
    agent.go_on.set()
    end = until(lambda: attempt.stream.end)
    assert end is not None
    assert (type(end.failure), end.gone, agent.cancelled) == (ClientGone, True, [])
    assert read(ask(worker, agent)) == ANSWER
    assert [repeated for _, repeated in agent.runs] == [False, False]


def test_each_hang_up_is_noted_once(open_store: Open, silent: Agent) -> None:
    worker = new_worker(open_store(), repeat_wait=SOON)
    for number in (1, 2):
        part = ask(worker, silent)
        assert silent.begun.wait(SOON)
        part.give_up()
        until(lambda number=number: len(silent.lingering) == number)  # type: ignore[misc]
        threading.Event().wait(0.1)
    assert silent.lingering == [token_of(part)] * 2
    silent.go_on.set()


def test_a_failed_run_is_attempted_again_by_the_repeat(open_store: Open, silent: Agent) -> None:
    silent.fails_with.append(LettaUnreachable("cut", code="stream_cut"))
    worker = new_worker(open_store(), repeat_wait=SOON)
    part = ask(worker, silent)
    assert silent.begun.wait(SOON)
    part.give_up()
    silent.go_on.set()
    until(lambda: part._stream.end)
    assert read(ask(worker, silent)) == ANSWER
    assert [repeated for _, repeated in silent.runs] == [False, True]


def test_a_run_is_not_ended_while_the_store_cannot_say_who_follows_it(open_store: Open, silent: Agent) -> None:
    store = FailingStore(open_store())
    part = ask(new_worker(store, repeat_wait=0.1), silent)
    assert silent.begun.wait(SOON)
    store.fault = StoreUnavailable("gone")
    part.give_up()
    threading.Event().wait(0.4)
    assert silent.cancelled == []
    store.fault = None
    assert until(lambda: silent.cancelled) == ["run-1"]
    silent.go_on.set()


@pytest.mark.fault("no thread left for a moment")
def test_without_a_thread_to_watch_it_the_run_is_cancelled_at_once(
    open_store: Open, silent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = ask(new_worker(open_store(), repeat_wait=SOON), silent)
    assert silent.begun.wait(SOON)

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        part.give_up()
    assert silent.cancelled == ["run-1"]
    silent.go_on.set()
