"""A turn is claimed by one attempt at a time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bridge.errors import StoreUnavailable
from bridge.journal import claims as module
from bridge.journal.claims import Claim, Claims, Identity
from bridge.journal.recording import events_key, followed_key
from bridge.store.port import Store
from bridge.store.sqlite import LocalStore
from tests.clock import Clock
from tests.stores import FailingStore
from tests.waiting import SOON

KEEP = 60.0
MINE, OTHER = (Claim.new("body", worker) for worker in ("worker-1", "worker-2"))


@pytest.fixture
def clock() -> Clock:
    return Clock(1000.0)


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return LocalStore(tmp_path / "shared.db", clock)


@pytest.fixture
def claims(store: Store) -> Claims:
    return of(store)


def of(store: Store) -> Claims:
    return Claims(store, Identity("turn-a", "body"), KEEP)


def test_every_attempt_has_its_own_token_and_can_have_the_turn_of_an_earlier_one() -> None:
    again = Claim.new("body", "worker-2", MINE.turn)
    assert again.turn == MINE.turn != OTHER.turn
    assert len({MINE.token, OTHER.token, again.token}) == 3
    assert Claim.from_text(again.to_text()) == again


def test_a_free_turn_is_claimed_and_a_claimed_one_is_not(claims: Claims) -> None:
    assert claims.take(MINE) is None
    assert claims.take(OTHER) == MINE


def test_a_turn_is_claimed_at_once_while_the_store_has_its_data(claims: Claims, store: Store) -> None:
    store.put("sign", "beat 7", KEEP)
    assert not claims.take_if_free(MINE, {"sign": "beat 8"})
    assert not claims.is_claimed()
    assert claims.take_if_free(MINE, {"sign": "beat 7"})
    assert not claims.take_if_free(OTHER, {"sign": "beat 7"})
    assert claims.take(OTHER) == MINE


def test_a_claim_is_taken_over_only_while_it_is_there(claims: Claims) -> None:
    claims.take(MINE)
    assert claims.take_over(MINE, OTHER)
    assert not claims.take_over(MINE, OTHER)
    assert claims.take(MINE) == OTHER


def test_a_renewed_claim_lasts_longer(claims: Claims, clock: Clock) -> None:
    claims.take(MINE)
    for _ in range(2):
        clock.now += KEEP - 1
        claims.renew(MINE)
    assert claims.take(OTHER) == MINE
    claims.renew(OTHER)
    clock.now += KEEP
    assert claims.take(OTHER) is None


def test_a_forgotten_attempt_leaves_nothing(claims: Claims, store: Store) -> None:
    claims.take(MINE)
    store.append(events_key(MINE.token), "events", 10, KEEP)
    claims.forget(MINE)
    assert store.items(events_key(MINE.token)) == []
    assert claims.take(OTHER) is None


def test_only_our_own_claim_is_forgotten_or_delivered(claims: Claims) -> None:
    claims.take(OTHER)
    claims.forget(MINE)
    claims.note_delivery(MINE)
    assert claims.take(MINE) == OTHER


@pytest.mark.parametrize("followed", [False, True])
def test_a_delivered_answer_is_kept_only_for_clients_that_follow(claims: Claims, store: Store, followed: bool) -> None:
    claims.take(MINE)
    store.append(events_key(MINE.token), "events", 10, KEEP)
    if followed:
        store.put(followed_key(MINE.token), "1", KEEP)
    claims.note_delivery(MINE)
    assert store.items(events_key(MINE.token)) == (["events"] if followed else [])
    assert claims.take(OTHER) is None


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_failing_store_fails_neither_a_delivery_nor_a_forgotten_attempt(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    claims = of(FailingStore(store, fault=StoreUnavailable("gone")))
    claims.note_delivery(MINE)
    claims.forget(MINE)
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == ["gone", "gone"]


def test_an_answer_that_is_delivered_in_a_moment_counts_as_delivered(
    claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims.take(MINE)
    monkeypatch.setattr(module, "MOMENT", 0.05)
    assert not claims.is_just_delivered(MINE)
    monkeypatch.setattr(module, "MOMENT", SOON)
    threading.Timer(0.05, claims.note_delivery, [MINE]).start()
    assert claims.is_just_delivered(MINE)


def test_the_moment_in_which_a_delivery_is_noted_is_short() -> None:
    assert module.MOMENT <= 1


def test_a_claim_is_restored_only_if_the_turn_has_none(store: Store, claims: Claims) -> None:
    assert claims.take(MINE) is None
    assert not claims.restore(MINE)
    assert claims.take_over(MINE, OTHER)
    assert not claims.restore(MINE)
    assert claims.take(MINE) == OTHER
    store.remove(module.claim_key(Identity("turn-a", "body")))
    assert claims.restore(MINE)
    assert claims.take(OTHER) == MINE
