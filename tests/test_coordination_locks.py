"""One turn at a time for an agent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from bridge.coordination.locks import AgentLocks
from bridge.errors import Busy


def hold_until(folder: Path, held: Event, leave: Event) -> None:
    with AgentLocks(folder, wait=5).hold("agent-1"):
        held.set()
        leave.wait(30)


@pytest.fixture
def processes() -> multiprocessing.context.SpawnContext:
    return multiprocessing.get_context("spawn")


def test_a_second_thread_has_to_wait_and_gives_up_in_time(tmp_path: Path) -> None:
    locks = AgentLocks(tmp_path, wait=0.05)
    refused: list[Busy] = []

    def try_it() -> None:
        try:
            with locks.hold("agent-1"):
                pass
        except Busy as busy:
            refused.append(busy)

    with locks.hold("agent-1"):
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert refused[0].retry_after is not None
    assert refused[0].retry_after <= 60
    with locks.hold("agent-1"):
        pass


def test_different_agents_do_not_wait_for_each_other(tmp_path: Path) -> None:
    locks = AgentLocks(tmp_path, wait=0)
    with locks.hold("agent-1"), locks.hold("agent-2"):
        pass


def test_threads_get_the_agent_in_the_order_of_their_coming(tmp_path: Path) -> None:
    locks = AgentLocks(tmp_path, wait=10)
    order: list[int] = []
    threads = []

    def take(number: int) -> None:
        with locks.hold("agent-1"):
            order.append(number)

    with locks.hold("agent-1"):
        lock = locks._threads["agent-1"]
        for number in range(5):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            threads.append(thread)
            while len(lock._queue) < number + 2:
                pass
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_another_process_has_to_wait(tmp_path: Path, processes: multiprocessing.context.SpawnContext) -> None:
    held, leave = processes.Event(), processes.Event()
    holder = processes.Process(target=hold_until, args=(tmp_path, held, leave))
    holder.start()
    assert held.wait(30)
    with pytest.raises(Busy), AgentLocks(tmp_path, wait=0.05).hold("agent-1"):
        pass
    leave.set()
    with AgentLocks(tmp_path, wait=10).hold("agent-1"):
        pass
    holder.join()


def test_a_killed_holder_lets_go_at_once(tmp_path: Path, processes: multiprocessing.context.SpawnContext) -> None:
    held, leave = processes.Event(), processes.Event()
    holder = processes.Process(target=hold_until, args=(tmp_path, held, leave))
    holder.start()
    assert held.wait(30)
    assert holder.pid is not None
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with AgentLocks(tmp_path, wait=0).hold("agent-1"):
        pass
