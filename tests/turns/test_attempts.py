"""A worker's attempts at turns, the clients that wait for them, and their end."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.errors import InternalFailure, LettaTimeout, StoreUnavailable
from bridge.journal.batches import End
from bridge.journal.claims import Claim, Identity
from bridge.journal.follower import Follower
from bridge.journal.recording import followed_key
from bridge.store.heartbeat import Heartbeat, last_beat
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from bridge.turn import MethodChosen, Text
from bridge.turns.attempts import Attempt, Attempts
from tests.stores import FailingStore
from tests.waiting import until

KEEP = 60.0
SAME = Identity("turn-a", "body")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "shared.db")


@pytest.fixture
def attempts(store: Store) -> Attempts:
    return Attempts(store, KEEP, Heartbeat(store))


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


def test_a_client_of_another_worker_is_known_to_wait(attempts: Attempts, store: Store) -> None:
    attempt = begin(attempts)
    store.put(followed_key(attempt.claim.token), "1", KEEP)
    assert not attempts.leave(attempt)


def test_while_the_store_fails_a_client_of_another_worker_may_wait(store: Store) -> None:
    failing = FailingStore(store)
    attempts = Attempts(failing, KEEP, Heartbeat(store))
    attempt = begin(attempts)
    failing.fault = StoreUnavailable("gone")
    assert not attempts.leave(attempt)


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
    assert not attempt.is_running
    attempt.write(MethodChosen("native"))
    assert attempt.is_running
    attempts.end(attempt, None)
    assert not attempt.is_running


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
    attempts = Attempts(failing, KEEP, Heartbeat(store))
    attempt = begin(attempts)
    failing.fault = fault
    attempts.end(attempt, None)
    assert attempt.stream.end == End("well")
    assert attempts.join(attempt.claim.token) is None
    assert "gone" in caplog.text
