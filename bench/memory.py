"""Measures the memory of a fresh process."""

from __future__ import annotations

import time
from threading import Thread

from bench.load import Load, run
from bench.machine import memory_mb
from bench.scenarios import NUMBER, System

STREAMS = 100
# So many clients at once reach every worker; of four, one worker often gets all.
EACH_WORKER = 32
_LONG = f"Write. {NUMBER}\n!bench say 80 25"
_SHORT = f"Hello. {NUMBER}\n!bench say 1"


def memory(system: System) -> dict[str, float]:
    """Measures it idle after some turns, and with a hundred streams under way: for the first time, and again. Before
    the streams, each worker has had a turn: its first one makes shared memory its own, whether it is a stream or not.
    """
    _take_turns(system, 4)
    idle = _idle(system)
    _take_turns(system, EACH_WORKER)
    used = _idle(system)
    first = _with_streams(system)
    after = _idle(system)
    again = _with_streams(system)
    return {
        "idle MB": idle,
        "more for the first 100 streams MB": first - used,
        "idle after them MB": after,
        "more for 100 streams again MB": again - after,
    }


def _take_turns(system: System, clients: int) -> None:
    run(Load(system.port, [system.request(number, _SHORT, False) for number in range(clients)], 0.3))


def _with_streams(system: System) -> float:
    requests = [system.request(number, _LONG, True) for number in range(STREAMS)]
    streaming = Thread(target=run, args=(Load(system.port, requests, 0.0, 80, spread=0.5),))
    streaming.start()
    time.sleep(1.5)
    during = memory_mb(system.pid)
    streaming.join()
    return during


def _idle(system: System) -> float:
    time.sleep(1.0)
    return memory_mb(system.pid)
