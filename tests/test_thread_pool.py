from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from bridge import thread_pool
from bridge.thread_pool import ThreadPool
from tests.waiting import SOON, until


@pytest.fixture
def pool() -> Iterator[ThreadPool]:
    made = ThreadPool(2, "tried")
    yield made
    made.shutdown()
    until(lambda: not threads())


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tried"]


def test_work_is_done_in_a_thread_of_the_pool(pool: ThreadPool) -> None:
    assert pool.submit(lambda: threading.current_thread().name).result(SOON) == "tried"
    assert pool.submit(divmod, 7, 2).result(SOON) == (3, 1)


def test_one_thread_does_one_work_after_the_other(pool: ThreadPool) -> None:
    for _ in range(20):
        pool.submit(lambda: None).result(SOON)
        until(lambda: len(pool._waiting) == 1)
    assert len(threads()) == 1


def test_the_thread_that_waited_for_the_shortest_time_gets_the_next_work(pool: ThreadPool) -> None:
    go_on = [threading.Event(), threading.Event()]
    working = [pool.submit(lambda event=event: (event.wait(SOON), threading.get_ident())[1]) for event in go_on]
    for event in go_on:
        event.set()
        until(lambda: len(pool._waiting) == go_on.index(event) + 1)  # noqa: B023
    for _ in range(5):
        assert pool.submit(threading.get_ident).result(SOON) == working[1].result(SOON)
        until(lambda: len(pool._waiting) == 2)


def test_work_waits_in_order_while_all_threads_are_busy(pool: ThreadPool) -> None:
    done: list[int] = []
    go_on = threading.Event()
    busy = [pool.submit(go_on.wait, SOON) for _ in range(2)]
    waiting: list[Future[None]] = [pool.submit(done.append, number) for number in range(20)]
    assert len(threads()) == 2
    assert done == []
    go_on.set()
    for future in [*busy, *waiting]:
        future.result(SOON)
    assert sorted(done) == list(range(20))


def test_work_that_fails_costs_no_thread(pool: ThreadPool, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(SOON)
    pool.run(lambda: divmod(1, 0))
    for _ in range(4):
        assert pool.submit(lambda: True).result(SOON)
    until(lambda: [record.message for record in caplog.records] == ["work in a thread failed"])
    assert len(threads()) <= 2


@pytest.mark.fault("no thread left for a moment")
def test_work_for_which_no_thread_can_be_started_is_refused(pool: ThreadPool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                pool.submit(lambda: True)
    assert pool.submit(lambda: True).result(SOON)


def test_threads_without_work_end_and_others_begin_when_there_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "IDLE", 0.05)
    pool, go_on = ThreadPool(2, "tried"), threading.Event()
    busy = pool.submit(go_on.wait, SOON)
    for _ in range(3):
        assert pool.submit(lambda: True).result(SOON)
        until(lambda: len(threads()) == 1)
    go_on.set()
    assert busy.result(SOON)
    until(lambda: not threads())
    assert (pool._waiting, pool._count) == ([], 0)


def test_no_work_is_lost_to_threads_that_are_about_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "IDLE", 0.0005)
    pool, dice = ThreadPool(3, "tried"), random.Random(1)
    for number in range(3_000):
        time.sleep(dice.uniform(0.0, 0.001))
        assert pool.submit(lambda number=number: number).result(SOON) == number
    pool.shutdown()
    until(lambda: not threads())


def test_a_pool_that_ends_does_the_work_that_it_has_and_takes_no_more() -> None:
    pool, go_on = ThreadPool(1, "tried"), threading.Event()
    first, second = pool.submit(go_on.wait, SOON), pool.submit(lambda: True)
    pool.shutdown(wait=False)
    with pytest.raises(RuntimeError):
        pool.submit(lambda: True)
    go_on.set()
    assert first.result(SOON)
    assert second.result(SOON)
    until(lambda: not threads())
