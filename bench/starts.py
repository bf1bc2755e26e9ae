"""Lanes of a fresh process: how soon it answers, and what memory it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from bench.lanes import NUMBER, Leg
from bench.load import Load, Seen, run
from bench.machine import memory_mb

STREAMS = 100
_LONG = f"Write. {NUMBER}\n!bench say 80 25"
_SHORT = f"Hello. {NUMBER}\n!bench say 1"


def memory(leg: Leg) -> dict[str, float]:
    """Idle after some turns, and with a hundred streams under way: for the first time, and once more."""
    run(Load(leg.port, [leg.ask(number, _SHORT, False) for number in range(4)], 0.3))
    idle = _settled(leg)
    first = _with_streams(leg)
    after = _settled(leg)
    again = _with_streams(leg)
    return {
        "idle MB": idle,
        "more for the first 100 streams MB": first - idle,
        "idle after them MB": after,
        "more for 100 streams again MB": again - after,
    }


def _with_streams(leg: Leg) -> float:
    done: list[Seen] = []
    load = Load(leg.port, [leg.ask(number, _LONG, True) for number in range(STREAMS)], 0.0, 80, spread=0.5)
    streaming = Thread(target=lambda: done.append(run(load)))
    streaming.start()
    time.sleep(1.5)
    during = memory_mb(leg.pid)
    streaming.join()
    return during


def _settled(leg: Leg, wait: Callable[[float], None] = time.sleep) -> float:
    wait(1.0)
    return memory_mb(leg.pid)
