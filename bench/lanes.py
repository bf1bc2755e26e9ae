"""The lanes that every leg runs in every round, and what is measured in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from bench.asked import MARK
from bench.load import Load, Seen, run
from bench.machine import cpu_seconds

DELTAS = 64
PACE_MS = 20
STREAM_SECONDS = DELTAS * PACE_MS / 1000
UNPACED = 1000
AGENTS = 200
NUMBER = MARK.decode()
ONE_DELTA = f"Write. {NUMBER}\n!bench say 1"

Metrics = Mapping[str, float]
Asking = Callable[[int, str, bool], bytes]


@dataclass(frozen=True, slots=True)
class Leg:
    """`ask(agent's number, text, stream)` is a request to it; `pid` is whose work is counted."""

    name: str
    port: int
    pid: int
    ask: Asking


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    measure: Callable[[Leg], Metrics]


def percentile(values: Sequence[float], part: int) -> float:
    return quantiles(values, n=100, method="inclusive")[part - 1] if len(values) > 1 else values[0]


def alone(leg: Leg) -> Metrics:
    seen = run(Load(leg.port, [leg.ask(0, ONE_DELTA, False)], 1.5, warm_up=0.1))
    return {"p50 ms": percentile(seen.times, 50) * 1000, "p99 ms": percentile(seen.times, 99) * 1000}


def ten(leg: Leg) -> Metrics:
    requests = [leg.ask(number, ONE_DELTA, False) for number in range(10)]
    before = cpu_seconds(leg.pid)
    seen = run(Load(leg.port, requests, 2.5, warm_up=0.2))
    spent = cpu_seconds(leg.pid) - before
    return {"requests/s": len(seen.times) / seen.seconds, "CPU ms a request": spent / seen.all_requests * 1000}


def streams(count: int) -> Callable[[Leg], Metrics]:
    def measure(leg: Leg) -> Metrics:
        text = f"Write. {NUMBER}\n!bench say {DELTAS} {PACE_MS}"
        requests = [leg.ask(number, text, True) for number in range(count)]
        before = cpu_seconds(leg.pid)
        load = Load(leg.port, requests, 2 * STREAM_SECONDS, DELTAS, spread=STREAM_SECONDS, warm_up=STREAM_SECONDS)
        seen = run(load)
        spent = cpu_seconds(leg.pid) - before
        return {**_times(seen), "lost": seen.lost, "CPU µs a frame": spent / seen.all_frames * 1e6}

    return measure


def _times(seen: Seen) -> dict[str, float]:
    late = sorted(map(abs, seen.gaps))
    return {
        "first p50 ms": percentile(seen.firsts, 50) * 1000,
        "first p99 ms": percentile(seen.firsts, 99) * 1000,
        "delay p50 ms": percentile(seen.delays, 50) * 1000,
        "delay p99 ms": percentile(seen.delays, 99) * 1000,
        "gap p50 ms": percentile(late, 50) * 1000,
        "gap p99 ms": percentile(late, 99) * 1000,
    }


def unpaced(leg: Leg) -> Metrics:
    requests = [leg.ask(number, f"Write. {NUMBER}\n!bench say {UNPACED}", True) for number in range(10)]
    seen = run(Load(leg.port, requests, 1.5, UNPACED))
    return {"frames/s": seen.all_frames / seen.seconds, "lost": seen.lost}


LANES = (
    Lane("alone", alone),
    Lane("ten", ten),
    Lane("50 streams", streams(50)),
    Lane("200 streams", streams(200)),
    Lane("unpaced", unpaced),
)
