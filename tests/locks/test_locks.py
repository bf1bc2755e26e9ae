"""An agent has one turn at a time, whether the locks are files or leases in a real Redis."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from bridge.errors import (
    Busy,
    ClientGone,
    HoldLost,
    InvalidRequest,
    LettaTimeout,
    LettaUnreachable,
    ModelFailed,
    RunBrokenOff,
    StoreUnavailable,
)
from bridge.locks import leases
from bridge.locks.agents import AgentHold, AgentLocks, TurnEnd
from bridge.locks.files import FileLocker
from bridge.locks.leases import LeaseLocker
from bridge.store import redis as redis_module
from bridge.store.port import Append, Put
from bridge.store.redis import RedisServer, milliseconds
from bridge.trace import Trace, set_current_trace
from testbed.redis import Redis
from tests.stores import KINDS, FailingStore, Kind, lock_place, locker, store_at
from tests.waiting import SOON, until

pytestmark = [pytest.mark.servers, pytest.mark.strict]

AGENT = "agent-1"
LEASE = 60.0
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with lock_place(request.param, tmp_path) as where:
        yield where


@pytest.fixture
def redis() -> Iterator[Redis]:
    with Redis() as server:
        yield server


@pytest.fixture
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes leases last longer than any test, and renews them often."""
    monkeypatch.setattr(leases, "LEASE", LEASE)
    monkeypatch.setattr(leases, "RENEWAL", 0.05)


def locks(place: str, wait: float = SOON) -> AgentLocks:
    return AgentLocks(locker(place), wait)


def is_lost(hold: AgentHold) -> bool:
    try:
        hold.check()
    except HoldLost:
        return True
    return False


def hold_on_command(place: str, pipe: Connection, lease: float) -> None:
    """Runs in another worker. Takes the agent at once, and frees it on command."""
    leases.LEASE, leases.RENEWAL, leases.MARGIN = lease, 0.2, 0.2
    redis_module.TIMEOUT_SECONDS = SOON
    with locks(place).hold(AGENT):
        pipe.send("held")
        pipe.recv()
    pipe.send("free")


class Worker:
    """A process that holds the agent."""

    def __init__(self, place: str, lease: float = LEASE) -> None:
        self._pipe, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=hold_on_command, args=(place, theirs, lease))

    def __enter__(self) -> Self:
        self.process.start()
        try:
            assert self._pipe.poll(30)
            self._pipe.recv()
        except BaseException:
            self.dies()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dies()

    def frees_it(self) -> None:
        self._pipe.send("go")
        assert self._pipe.poll(30)
        self._pipe.recv()
        self.process.join()

    def dies(self) -> None:
        self.process.kill()
        self.process.join()

    def send(self, signal_number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal_number)


def waits_of(agents: AgentLocks) -> list[str]:
    """Holds the agent once, or gives up. Returns the causes of waiting that the trace has then."""
    trace = Trace()
    set_current_trace(trace)
    with suppress(Busy), agents.hold(AGENT):
        pass
    return [*trace.waits]


def test_only_who_has_to_wait_counts_as_waiting(place: str) -> None:
    agents = locks(place, wait=0.05)
    assert waits_of(agents) == []
    with agents.hold(AGENT), ThreadPoolExecutor() as pool:
        assert pool.submit(waits_of, agents).result() == ["another turn"]
    with Worker(place):
        assert waits_of(agents) == ["another turn"]


def test_a_second_thread_has_to_wait_and_gives_up_in_time(place: str) -> None:
    agents = locks(place, wait=0.05)
    refused: list[Busy] = []

    def try_it() -> None:
        try:
            with agents.hold(AGENT):
                pass
        except Busy as busy:
            refused.append(busy)

    with agents.hold(AGENT):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert refused[0].retry_after is not None
    assert refused[0].retry_after <= 60
    with agents.hold(AGENT):
        pass


def test_different_agents_do_not_wait_for_each_other(place: str) -> None:
    agents = locks(place, wait=0)
    with agents.hold(AGENT), agents.hold("agent-2"):
        pass


def test_threads_get_the_agent_in_the_order_in_which_they_came(place: str) -> None:
    agents = locks(place)
    order: list[int] = []
    threads = []

    def take(number: int) -> None:
        with agents.hold(AGENT):
            order.append(number)

    with agents.hold(AGENT):
        lock = agents._threads[AGENT]
        for number in range(5):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            threads.append(thread)
            while len(lock._queue) < number + 2:
                pass
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_worker_with_many_waiting_lets_another_worker_have_its_turn(place: str) -> None:
    """Of two workers, one has threads that queue without end, and the other comes later."""
    busy, other = locks(place), locks(place)
    done = threading.Event()
    taken = [0]

    def again_and_again() -> None:
        while not done.is_set():
            with busy.hold(AGENT):
                taken[0] += 1
                time.sleep(0.02)

    with ThreadPoolExecutor(4) as crowd:
        turns = [crowd.submit(again_and_again) for _ in range(4)]
        try:
            for _ in range(3):
                before = taken[0]
                with other.hold(AGENT):
                    overtaken = taken[0] - before
                assert overtaken < 100
        finally:
            done.set()
    for each in turns:
        each.result()


@pytest.mark.parametrize("in_this_worker", [True, False])
def test_only_a_turn_that_waits_is_called_while_it_waits(place: str, in_this_worker: bool) -> None:
    agents, called = locks(place), threading.Event()
    with agents.hold(AGENT, while_waiting=called.set):
        assert not called.is_set()
    other = agents if in_this_worker else locks(place)

    def wait() -> None:
        with other.hold(AGENT, while_waiting=called.set):
            pass

    with agents.hold(AGENT):
        thread = threading.Thread(target=wait)
        thread.start()
        assert called.wait(SOON)
    thread.join()


def test_a_turn_whose_client_left_leaves_the_queue(place: str) -> None:
    agents, gone = locks(place), threading.Event()
    left: list[ClientGone] = []

    def wait() -> None:
        try:
            with agents.hold(AGENT, gone=gone):
                pass
        except ClientGone as fault:
            left.append(fault)

    with agents.hold(AGENT):
        thread = threading.Thread(target=wait)
        thread.start()
        gone.set()
        thread.join(SOON)
    assert len(left) == 1


def test_a_turn_knows_whether_the_previous_one_came_to_its_end(place: str) -> None:
    agents = locks(place)
    with agents.hold(AGENT) as first:
        assert not first.previous_turn_ended
    assert fails_while_it_holds(agents)
    with agents.hold(AGENT) as third:
        assert not third.previous_turn_ended
    with agents.hold(AGENT) as fourth:
        assert fourth.previous_turn_ended


def nothing_sent() -> LettaUnreachable:
    fault = LettaUnreachable("no connection")
    fault.nothing_sent = True
    return fault


@pytest.mark.parametrize(
    ("fault", "end"),
    [
        (InvalidRequest("no"), "failed"),
        (ModelFailed("no"), "failed"),
        (LettaTimeout("no"), "lost"),
        (RunBrokenOff("no"), "lost"),
        (LettaUnreachable("the connection broke"), "lost"),
        (nothing_sent(), "failed"),
        (KeyError("a fault of the bridge"), "lost"),
        (GeneratorExit(), "lost"),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, BaseException) else one,
)
def test_a_turn_knows_whether_the_run_of_the_previous_one_may_go_on(
    place: str, fault: BaseException, end: TurnEnd
) -> None:
    agents = locks(place)
    with agents.hold(AGENT) as hold:
        assert hold.previous == "unknown"
    with suppress(type(fault)), agents.hold(AGENT) as hold:
        assert hold.previous == "ended"
        hold.before_call("send_messages")
        raise fault
    with agents.hold_outside_turn(AGENT):
        pass
    with agents.hold(AGENT) as hold:
        assert hold.previous == end
        assert not hold.previous_turn_ended
        hold.unfinished = True
    with agents.hold(AGENT) as hold:
        assert hold.previous == "lost"


def fails_while_it_holds(agents: AgentLocks) -> bool:
    previous_turn_ended = False
    try:
        with agents.hold(AGENT) as hold:
            previous_turn_ended = hold.previous_turn_ended
            raise ZeroDivisionError
    except ZeroDivisionError:
        return previous_turn_ended


def test_what_a_turn_leaves_for_the_next_is_noted_when_it_frees_the_agent(place: str) -> None:
    agents, store = locks(place), store_at(place)
    with agents.hold(AGENT) as hold:
        hold.note_at_end([Append("heard", "1", 10, 60.0)])
        hold.note_at_end([Append("heard", "2", 10, 60.0), Put("calls", "open", 60.0)])
        assert (store.items("heard"), store.get("calls")) == ([], None)
    with agents.hold(AGENT) as hold:
        assert hold.previous_turn_ended
        assert (store.items("heard"), store.get("calls")) == (["1", "2"], "open")
    assert store.items("heard") == ["1", "2"]


def test_a_turn_that_fails_leaves_its_notes_too(place: str) -> None:
    agents, store = locks(place), store_at(place)
    with suppress(ZeroDivisionError), agents.hold(AGENT) as hold:
        hold.note_at_end([Append("heard", "1", 10, 60.0)])
        raise ZeroDivisionError
    with agents.hold(AGENT) as hold:
        assert not hold.previous_turn_ended
        assert store.items("heard") == ["1"]


def test_another_process_has_to_wait(place: str) -> None:
    with Worker(place) as worker:
        with pytest.raises(Busy), locks(place, wait=0.05).hold(AGENT):
            pass
        worker.frees_it()
    with locks(place).hold(AGENT) as hold:
        assert hold.previous_turn_ended


@pytest.mark.parametrize("fault", [GeneratorExit(), KeyError("a fault of the bridge"), LettaTimeout("no")])
def test_a_turn_that_sent_nothing_leaves_no_run(place: str, fault: BaseException) -> None:
    """A client may leave while its turn waits for the agent, and then the turn is closed."""
    agents = locks(place)
    for end in ("unknown", "unknown", "failed", "failed"):
        with suppress(type(fault)), agents.hold(AGENT) as hold:
            hold.before_call("change_agent")
            hold.earlier_runs_ended = end == "failed"
            raise fault
        with agents.hold(AGENT) as hold:
            assert hold.previous == end
            hold.keep_unfinished_mark()


def test_a_lost_run_is_known_until_somebody_has_waited_for_it(place: str) -> None:
    agents = locks(place)
    with agents.hold(AGENT) as hold:
        hold.unfinished = True
    for has_waited, end in ((False, "lost"), (False, "lost"), (True, "failed")):
        with suppress(ClientGone), agents.hold(AGENT) as hold:
            hold.earlier_runs_ended = has_waited
            raise ClientGone.before_its_turn()
        with agents.hold(AGENT) as hold:
            assert hold.previous == end
            hold.keep_unfinished_mark()


def test_work_outside_turns_that_has_waited_for_a_lost_run_says_so(place: str) -> None:
    agents = locks(place)
    with agents.hold(AGENT) as hold:
        hold.unfinished = True
    with agents.hold(AGENT) as hold:
        hold.keep_unfinished_mark()
        hold.earlier_runs_ended = True
    with agents.hold(AGENT) as hold:
        assert hold.previous == "failed"


@pytest.mark.fault("a worker is killed at a random moment")
@pytest.mark.parametrize("kind", KINDS)
def test_the_lock_of_a_killed_holder_is_free(kind: Kind, tmp_path: Path) -> None:
    """A locked file is free at once, a lease when it has expired."""
    with lock_place(kind, tmp_path) as where:
        with Worker(where, lease=1.0) as worker:
            worker.dies()
        with locks(where, wait=0 if kind == "local" else SOON).hold(AGENT) as hold:
            assert hold.previous == "lost"


# --- files --------------------------------------------------------------------------------------------


@pytest.mark.fault("the disk is full or can't be written")
@pytest.mark.parametrize("fault", [StoreUnavailable("gone"), ValueError("gone")])
def test_an_agent_is_free_though_a_turn_could_not_leave_its_notes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    store = FailingStore(store_at(str(tmp_path)), fault=fault)
    agents = AgentLocks(FileLocker(tmp_path, store), SOON)
    expected = suppress(ValueError) if isinstance(fault, ValueError) else nullcontext()
    with expected, agents.hold(AGENT) as hold:
        hold.note_at_end([Put("calls", "open", 60.0)])
    assert isinstance(fault, ValueError) or "could not be noted: gone" in caplog.text
    with agents.hold(AGENT) as hold:
        assert hold.previous_turn_ended


def removed(folder: Path) -> None:
    for file in folder.glob(f"{AGENT}.*"):
        file.unlink()


@pytest.mark.fault("the disk is full or can't be written")
def test_a_holder_whose_lock_was_removed_does_nothing_more_to_the_agent(tmp_path: Path) -> None:
    """The next turn finds no lock, makes one, and has the agent."""
    with locks(str(tmp_path)).hold(AGENT) as hold:
        hold.check()
        removed(tmp_path)
        with locks(str(tmp_path)).hold(AGENT) as other:
            assert not other.previous_turn_ended
            other.check()
            with pytest.raises(HoldLost):
                hold.check()


@pytest.mark.fault("the disk is full or can't be written")
def test_a_turn_that_waited_for_a_removed_lock_waits_for_the_new_one(tmp_path: Path) -> None:
    late, waits, goes_on = locker(str(tmp_path)), threading.Event(), threading.Event()
    got: list[object] = []

    def patience() -> bool:
        waits.set()
        return not goes_on.is_set()

    with ExitStack() as first:
        first.enter_context(locks(str(tmp_path)).hold(AGENT))
        waiting = threading.Thread(target=lambda: got.append(late.take_lock(AGENT, patience)))
        waiting.start()
        assert waits.wait(SOON)
        removed(tmp_path)
        with locks(str(tmp_path)).hold(AGENT):
            first.close()
            waits.clear()
            assert waits.wait(SOON)
            goes_on.set()
            waiting.join()
    assert got == [None]


# --- leases -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("long_leases")
def test_a_lease_is_renewed_while_it_is_held(redis: Redis) -> None:
    """Each renewal puts its end off, by the clock of Redis and by the holder's own."""
    own = LeaseLocker(RedisServer(redis.url))
    with AgentLocks(own, SOON).hold(AGENT) as hold, RedisServer(redis.url).client() as client:
        (lease,), key = own._leases, leases._redis_key("lock", AGENT)
        for _ in range(3):
            client.pexpire(key, milliseconds(LEASE / 2))
            lease.until = 0.0
            until(lambda: client.pttl(key) > milliseconds(LEASE / 2))
            until(lease.holds)
        with pytest.raises(Busy), locks(redis.url, wait=0.1).hold(AGENT):
            pass
        hold.check()


@pytest.mark.usefixtures("long_leases")
def test_a_lease_is_renewed_after_a_renewal_that_failed_for_a_reason_nobody_foresaw(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = LeaseLocker(RedisServer(redis.url))
    renewal, faults = own._renewal, [MemoryError("no memory")]

    def fragile(**arguments: Any) -> Any:
        if faults:
            raise faults.pop()
        return renewal(**arguments)

    monkeypatch.setattr(own, "_renewal", fragile)
    with AgentLocks(own, SOON).hold(AGENT) as hold:
        until(lambda: not faults)
        (lease,) = own._leases
        lease.until = 0.0
        until(lease.holds)
        hold.check()


@pytest.mark.fault("the holder of an agent is stopped for longer than its lease")
def test_a_holder_that_was_stopped_knows_that_another_turn_has_the_agent(redis: Redis) -> None:
    with Worker(redis.url, lease=1.0) as worker:
        worker.send(signal.SIGSTOP)
        with locks(redis.url).hold(AGENT) as hold:
            worker.send(signal.SIGCONT)
            worker.frees_it()  # late, and it must not free our lease
            with pytest.raises(Busy), locks(redis.url, wait=0.1).hold(AGENT):
                pass
            hold.check()


@pytest.mark.fault("the holder of an agent is stopped for longer than its lease")
@pytest.mark.usefixtures("long_leases")
def test_a_holder_that_could_not_renew_its_lease_has_lost_the_agent(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locks(redis.url).hold(AGENT) as hold:
        hold.check()
        monkeypatch.setattr(leases, "MARGIN", 0.2)
        monkeypatch.setattr(leases, "LEASE", 1.0)  # from the next renewal on
        with RedisServer(redis.url).client() as client:
            until(lambda: client.pttl(leases._redis_key("lock", AGENT)) <= 1000)
        redis.pause()
        until(lambda: is_lost(hold))
        redis.resume()


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.usefixtures("long_leases")
def test_a_lease_that_redis_forgot_is_lost(redis: Redis) -> None:
    """After a failover, another turn may have had the agent."""
    with locks(redis.url).hold(AGENT) as hold:
        redis.stop()
        redis.start()
        with locks(redis.url).hold(AGENT) as other:
            assert not other.previous_turn_ended
            until(lambda: is_lost(hold))
            other.check()


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
@pytest.mark.usefixtures("long_leases")
def test_a_turn_that_lost_its_lease_frees_no_other_and_leaves_its_notes(redis: Redis) -> None:
    """The agent may have heard what it notes."""
    with ExitStack() as lost:
        lost.enter_context(locks(redis.url).hold(AGENT)).note_at_end([Append("heard", "1", 10, 60.0)])
        with RedisServer(redis.url).client() as client:
            client.delete(leases._redis_key("lock", AGENT))
        with locks(redis.url).hold(AGENT) as other:
            lost.close()
            with pytest.raises(Busy), locks(redis.url, wait=0.1).hold(AGENT):
                pass
            other.check()
            assert store_at(redis.url).items("heard") == ["1"]


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_lease_that_cannot_be_given_back_fails_no_turn(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    with locks(redis.url).hold(AGENT) as hold:
        hold.note_at_end([Append("heard", "1", 10, 60.0)])
        redis.stop()
    assert "will expire" in caplog.text
    assert "could not be noted" in caplog.text


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_a_redis_that_is_full_frees_the_agent_without_the_notes(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    with RedisServer(redis.url).client() as client:
        with locks(redis.url).hold(AGENT) as hold:
            hold.note_at_end([Append("heard", "1", 10, 60.0)])
            client.config_set("maxmemory", "1")
        client.config_set("maxmemory", "0")
    assert "could not be noted" in caplog.text
    assert "will expire" not in caplog.text
    with locks(redis.url, wait=1.0).hold(AGENT):
        pass


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_without_redis_no_turn_gets_an_agent(redis: Redis) -> None:
    agents = locks(redis.url)
    redis.stop()
    with pytest.raises(StoreUnavailable), agents.hold(AGENT):
        pass
    redis.start()
    with agents.hold(AGENT):
        pass


HOUR = 3_600_000


@pytest.mark.fault("the clock is set")
def test_a_dead_holder_loses_its_agent_though_the_clock_of_redis_was_put_back(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE", 1.0)
    with RedisServer(redis.url).client() as client:
        client.set(leases._redis_key("lock", AGENT), "token-of-the-dead", px=HOUR + 1000)
    with locks(redis.url).hold(AGENT) as hold:
        assert not hold.previous_turn_ended


@pytest.mark.fault("the clock is set")
def test_a_dead_process_leaves_the_queue_though_the_clock_of_redis_was_put_back(redis: Redis) -> None:
    with RedisServer(redis.url).client() as client:
        client.zadd(leases._redis_key("queue", AGENT), {"token-of-the-dead": 1})
        client.zadd(leases._redis_key("heard", AGENT), {"token-of-the-dead": time.time() * 1000 + HOUR})
    with locks(redis.url).hold(AGENT):
        pass


def test_a_dead_process_leaves_the_queue(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "SILENCE_LIMIT", 0.3)
    dead = locker(redis.url)
    with locks(redis.url).hold(AGENT):
        assert dead._try_to_take(AGENT, "token-of-the-dead") is None  # type: ignore[attr-defined]
    with locks(redis.url).hold(AGENT):
        pass
