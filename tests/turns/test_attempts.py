"""A worker's attempts at turns, the clients that wait for them, and their end."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bridge.errors import ClientGone, InternalFailure, LettaTimeout, StoreUnavailable
from bridge.journal.batches import End
from bridge.journal.claims import Claim, Identity
from bridge.journal.follower import Follower
from bridge.store.heartbeat import Heartbeat, last_beat
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import MethodChosen, Text
from bridge.turns import attempts as module
from bridge.turns.attempts import Attempt, Attempts
from bridge.turns.life import AttemptState
from tests.stores import FailingStore
from tests.waiting import until

KEEP = 60.0
SAME = Identity("turn-a", "body")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


@pytest.fixture
def attempts(store: Store) -> Attempts:
    return Attempts(store, KEEP, Heartbeat(store), 0.0)


def begin(attempts: Attempts, *, repeated: bool = False) -> Attempt:
    """Returns an attempt that has claimed its turn."""
    claims, claim = attempts.claims(SAME), Claim.new(SAME.body, attempts.heartbeat.id)
    assert claims.take(claim) is None
    return attempts.begin(claim, claims, repeated=repeated)


def test_an_attempt_is_joined_while_it_goes_on(attempts: Attempts) -> None:
    attempt = begin(attempts)
    assert attempts.join(attempt.claim.token) is attempt
    attempts.end(attempt, None)
    assert attempts.join(attempt.claim.token) is None


def test_the_last_client_that_leaves_is_known(attempts: Attempts, store: Store) -> None:
    attempt = begin(attempts)
    attempts.join(attempt.claim.token)
    assert not attempts.leave(attempt)
    assert attempts.leave(attempt)


def test_a_client_that_comes_back_in_time_keeps_the_attempt_going(attempts: Attempts) -> None:
    attempt = begin(attempts)
    for _ in range(2):
        assert attempts.leave(attempt)
        assert attempt.is_alone
        attempts.join(attempt.claim.token)
        assert not attempt.is_alone
        attempt.write(MethodChosen("native"))


def test_an_attempt_is_given_up_only_without_clients(attempts: Attempts) -> None:
    attempt = begin(attempts)
    assert not attempt.give_up()
    assert not attempt.gone.is_set()
    attempts.leave(attempt)
    assert not attempt.give_up()  # nothing runs that would have to be cancelled
    assert attempt.gone.is_set()


def test_a_run_that_is_given_up_has_to_be_cancelled_once(attempts: Attempts) -> None:
    attempt = begin(attempts)
    attempt.write(MethodChosen("native"))
    attempts.leave(attempt)
    assert [attempt.give_up(), attempt.give_up()] == [True, False]
    attempts.join(attempt.claim.token)
    assert attempt.gone.is_set()


def test_a_client_that_was_sent_away_is_expected_to_come_again(attempts: Attempts) -> None:
    attempt = begin(attempts)
    attempts.send_away(attempt)
    assert not attempt.is_alone
    attempt.write(MethodChosen("native"))


def test_an_attempt_does_not_begin_to_run_without_a_client(attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETURN", 0.1)
    attempt = begin(attempts)
    attempts.leave(attempt)
    with pytest.raises(ClientGone):
        attempt.write(MethodChosen("native"))
    assert attempt.stream.events == []
    assert attempt.gone.is_set()


def test_a_client_that_comes_back_before_its_attempt_begins_to_run_finds_it_running(attempts: Attempts) -> None:
    attempt = begin(attempts)
    attempts.leave(attempt)
    threading.Timer(0.1, attempts.join, [attempt.claim.token]).start()
    attempt.write(MethodChosen("native"))
    assert attempt.life.state is AttemptState.RUNNING


def test_the_heartbeat_names_the_attempts_and_writes_them_to_the_store(attempts: Attempts, store: Store) -> None:
    attempt = begin(attempts)
    attempt.write(Text("a"))
    name = attempts.heartbeat.id
    until(lambda: (beat := last_beat(store, name)) and beat.turns == (attempt.claim.token,))
    follower = Follower(store, attempt.claim)
    assert until(lambda: follower.read_end() or follower.recorded) == [Text("a")]
    attempts.end(attempt, None)
    until(lambda: (beat := last_beat(store, name)) and beat.turns == ())


def test_an_attempt_runs_from_the_moment_when_its_method_is_chosen(attempts: Attempts) -> None:
    attempt = begin(attempts)
    states = [attempt.life.state]
    attempt.write(MethodChosen("native"))
    states.append(attempt.life.state)
    attempts.end(attempt, None)
    assert [*states, attempt.life.state] == [AttemptState.WAITING, AttemptState.RUNNING, AttemptState.ENDED]


@pytest.mark.parametrize("gone", [False, True])
def test_the_end_is_the_same_here_and_in_the_store(attempts: Attempts, store: Store, gone: bool) -> None:
    attempt = begin(attempts)
    attempt.write(MethodChosen("native"))
    if gone:
        attempt.gone.set()
    attempts.end(attempt, LettaTimeout("late"))
    recorded = Follower(store, attempt.claim).read_end()
    for end in (attempt.stream.end, recorded):
        assert end is not None
        assert (end.how, end.gone, str(end.failure)) == ("failed", gone, "late")


def test_the_store_knows_the_end_before_any_client(
    attempts: Attempts, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, known = begin(attempts), list[End | None]()
    monkeypatch.setattr(attempt.stream, "finish", lambda end: known.append(Follower(store, attempt.claim).read_end()))
    attempts.end(attempt, None)
    assert known == [End("well")]


def test_a_fault_of_the_bridge_is_a_failure_without_its_words(attempts: Attempts) -> None:
    attempt = begin(attempts)
    attempts.end(attempt, ZeroDivisionError("canary"))
    end = attempt.stream.end
    assert end is not None
    assert (type(end.failure), "canary" in str(end.failure)) == (InternalFailure, False)


@pytest.mark.parametrize(
    ("began", "repeated", "fault", "is_forgotten"),
    [
        (False, False, LettaTimeout("late"), True),
        (True, False, LettaTimeout("late"), False),
        (False, True, LettaTimeout("late"), False),
        (False, False, None, False),
    ],
)
def test_only_a_first_attempt_that_failed_before_it_ran_is_forgotten(
    attempts: Attempts, began: bool, repeated: bool, fault: Exception | None, is_forgotten: bool
) -> None:
    attempt = begin(attempts, repeated=repeated)
    if began:
        attempt.write(MethodChosen("native"))
    attempts.end(attempt, fault)
    assert (attempt.claims.take(Claim.new(SAME.body, "another")) is None) == is_forgotten


@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), ValueError("gone")])
def test_clients_see_the_end_also_if_the_store_does_not(
    store: Store, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    failing = FailingStore(store)
    attempts = Attempts(failing, KEEP, Heartbeat(store), 0.0)
    attempt = begin(attempts)
    failing.fault = fault
    attempts.end(attempt, None)
    assert attempt.stream.end == End("well")
    assert attempts.join(attempt.claim.token) is None
    assert "gone" in caplog.text
