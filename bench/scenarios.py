"""The scenarios in which every system is measured in every round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles

from bench.client_requests import MARK
from bench.load import Load, LoadResult, run
from bench.machine import cpu_seconds

DELTAS = 64
PACE_MS = 20
STREAM_SECONDS = DELTAS * PACE_MS / 1000
UNPACED = 1000
AGENTS = 200
NUMBER = MARK.decode()
ONE_DELTA = f"Write. {NUMBER}\n!bench say 1"

Metrics = Mapping[str, float]
MakeRequest = Callable[[int, str, bool], bytes]


@dataclass(frozen=True, slots=True)
class System:
    """A system to measure. `request(agent's number, text, stream)` makes a request to it; `pid` is its main process."""

    name: str
    port: int
    pid: int
    request: MakeRequest


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    measure: Callable[[System], Metrics]


def percentile(values: Sequence[float], part: int) -> float:
    return quantiles(values, n=100, method="inclusive")[part - 1] if len(values) > 1 else values[0]


def one_client(system: System) -> Metrics:
    result = run(Load(system.port, [system.request(0, ONE_DELTA, False)], 1.5, warm_up=0.1))
    return {"p50 ms": percentile(result.times, 50) * 1000, "p99 ms": percentile(result.times, 99) * 1000}


def ten_clients(system: System) -> Metrics:
    requests = [system.request(number, ONE_DELTA, False) for number in range(10)]
    before = cpu_seconds(system.pid)
    result = run(Load(system.port, requests, 2.5, warm_up=0.2))
    spent = cpu_seconds(system.pid) - before
    return {"requests/s": len(result.times) / result.seconds, "CPU ms a request": spent / result.all_requests * 1000}


def streams(count: int) -> Callable[[System], Metrics]:
    def measure(system: System) -> Metrics:
        text = f"Write. {NUMBER}\n!bench say {DELTAS} {PACE_MS}"
        requests = [system.request(number, text, True) for number in range(count)]
        before = cpu_seconds(system.pid)
        load = Load(system.port, requests, 2 * STREAM_SECONDS, DELTAS, spread=STREAM_SECONDS, warm_up=STREAM_SECONDS)
        result = run(load)
        spent = cpu_seconds(system.pid) - before
        return {**_times(result), "lost": result.lost, "CPU µs a frame": spent / result.all_frames * 1e6}

    return measure


def _times(result: LoadResult) -> dict[str, float]:
    gaps = sorted(map(abs, result.gaps))
    return {
        "first p50 ms": percentile(result.firsts, 50) * 1000,
        "first p99 ms": percentile(result.firsts, 99) * 1000,
        "delay p50 ms": percentile(result.delays, 50) * 1000,
        "delay p99 ms": percentile(result.delays, 99) * 1000,
        "gap p50 ms": percentile(gaps, 50) * 1000,
        "gap p99 ms": percentile(gaps, 99) * 1000,
    }


def unpaced(system: System) -> Metrics:
    requests = [system.request(number, f"Write. {NUMBER}\n!bench say {UNPACED}", True) for number in range(10)]
    result = run(Load(system.port, requests, 1.5, UNPACED))
    return {"frames/s": result.all_frames / result.seconds, "lost": result.lost}


SCENARIOS = (
    Scenario("one client", one_client),
    Scenario("ten clients", ten_clients),
    Scenario("50 streams", streams(50)),
    Scenario("200 streams", streams(200)),
    Scenario("unpaced", unpaced),
)
