from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from bridge.errors import Busy, StoreUnavailable
from bridge.limits.allowance import Allowance
from tests.clock import Clock
from tests.waiting import SOON


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000.0)


@pytest.fixture
def allowance(tmp_path: Path, clock: Clock) -> Allowance:
    return Allowance(tmp_path / "keys", clock)


def spend(allowance: Allowance, count: int, rate: int = 6, key: str = "roo") -> int:
    """Returns how many of so many requests were let in."""
    let_in = 0
    for _ in range(count):
        try:
            allowance.count_request(key, rate)
        except Busy:
            continue
        let_in += 1
    return let_in


def test_a_key_has_its_requests_a_minute_and_not_more(allowance: Allowance) -> None:
    assert spend(allowance, 20) == 6


def test_a_refusal_says_when_the_next_request_is_let_in(allowance: Allowance, clock: Clock) -> None:
    spend(allowance, 6)
    clock.now += 3
    with pytest.raises(Busy, match="'roo' may make 6 requests a minute") as caught:
        allowance.count_request("roo", 6)
    assert (caught.value.status, caught.value.code, caught.value.retry_after) == (429, "rate_limit_exceeded", 7)
    clock.now += 7
    assert spend(allowance, 5) == 1


def test_unused_requests_add_up_to_those_of_one_minute(allowance: Allowance, clock: Clock) -> None:
    spend(allowance, 3)
    clock.now += 3600
    assert spend(allowance, 20) == 6


@pytest.mark.fault("the clock is set")
def test_a_clock_that_is_put_back_locks_no_key_out(allowance: Allowance, clock: Clock) -> None:
    spend(allowance, 6)
    clock.now -= 3600
    assert spend(allowance, 1) == 0
    clock.now += 10
    assert spend(allowance, 5) == 1


@pytest.mark.fault("the disk is full or can't be written")
def test_a_folder_that_cannot_be_written_is_reported(allowance: Allowance, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("in the way")
    for ask in (lambda: allowance.count_request("roo", 6), lambda: allowance.take_slot("roo", 6)):
        with pytest.raises(StoreUnavailable, match="BRIDGE_DATA_DIR"):
            ask()


def test_keys_do_not_share_their_rate(allowance: Allowance) -> None:
    assert [spend(allowance, 9, key=key) for key in ("a", "b", ".", "..")] == [6, 6, 6, 6]


def test_workers_share_the_rate_of_a_key(allowance: Allowance, tmp_path: Path, clock: Clock) -> None:
    other = Allowance(tmp_path / "keys", clock)
    assert spend(allowance, 4) + spend(other, 4) == 6


def test_a_key_has_a_limited_number_of_turns_at_once(allowance: Allowance, tmp_path: Path) -> None:
    other = Allowance(tmp_path / "keys")
    slots = [allowance.take_slot("roo", 2), other.take_slot("roo", 2)]
    for worker in (allowance, other):
        with pytest.raises(Busy, match="'roo' has 2 turns under way") as caught:
            worker.take_slot("roo", 2)
        assert caught.value.code == "too_many_turns"
    allowance.take_slot("other", 1).leave()
    slots[0].leave()
    slots[0].leave()
    other.take_slot("roo", 2)


@pytest.mark.fault("a worker is killed at a random moment")
def test_the_turns_of_a_killed_worker_do_not_count_any_more(allowance: Allowance, tmp_path: Path) -> None:
    ready = multiprocessing.get_context("fork").Event()

    def work() -> None:
        slot = Allowance(tmp_path / "keys").take_slot("roo", 1)
        ready.set()
        signal.pause()
        slot.leave()

    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    assert ready.wait(SOON)
    with pytest.raises(Busy):
        allowance.take_slot("roo", 1)
    os.kill(worker.pid or 0, signal.SIGKILL)
    worker.join(SOON)
    allowance.take_slot("roo", 1).leave()
