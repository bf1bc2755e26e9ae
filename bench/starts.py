"""Lanes of a fresh process: how soon it answers, and what memory it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread

from bench.lanes import NUMBER, Leg
from bench.load import Load, Seen, run
from bench.machine import memory_mb

STREAMS = 100
_LONG = f"Write. {NUMBER}\n!bench say 120 25"
_SHORT = f"Hello. {NUMBER}\n!bench say 1"


def memory(leg: Leg) -> dict[str, float]:
    """Idle after some turns, with streams under way, and after them."""
    run(Load(leg.port, [leg.ask(number, _SHORT, False) for number in range(4)], 0.3))
    idle = _settled(leg)
    done: list[Seen] = []
    load = Load(leg.port, [leg.ask(number, _LONG, True) for number in range(STREAMS)], 0.0, 120, spread=0.5)
    streaming = Thread(target=lambda: done.append(run(load)))
    streaming.start()
    time.sleep(2.0)
    during = memory_mb(leg.pid)
    streaming.join()
    return {"idle MB": idle, "more for 100 streams MB": during - idle, "after them MB": _settled(leg)}


def _settled(leg: Leg, wait: Callable[[float], None] = time.sleep) -> float:
    wait(1.0)
    return memory_mb(leg.pid)
