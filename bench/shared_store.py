"""Measures turns with the store of one machine, and with Redis for one bridge and for two, as dynos are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from bench import tools
from bench.client_requests import CODING_TOOLS, bridge_request, chat
from bench.load import Load, LoadResult, run
from bench.machine import OtherProcesses, cpu_seconds
from bench.processes import bridge, bridge_port, mock, url
from bench.samples import BRIDGE, Samples
from bench.scenarios import ONE_DELTA, percentile
from testbed.redis import Redis

CLIENTS = 10
SECONDS = 2.5
HELLO = "Hello.\n!bench say 1"

Measured = dict[str, float]


@dataclass(frozen=True, slots=True)
class Setup:
    name: str
    bridges: int
    workers: int
    with_redis: bool = True


SETUPS = (
    Setup("local store, 1 bridge of 2 workers", 1, 2, with_redis=False),
    Setup("Redis, 1 bridge of 2 workers", 1, 2),
    Setup("Redis, 2 bridges of 1 worker", 2, 1),
    Setup("Redis, 2 bridges of 2 workers", 2, 2),
)


@dataclass(frozen=True, slots=True)
class Running:
    """A setup that runs. `redis_url` is "" without Redis."""

    name: str
    ports: Sequence[int]
    pids: Sequence[int]
    redis_url: str

    def info(self) -> dict[str, float]:
        """Returns what Redis says about itself, {} without Redis."""
        if not self.redis_url:
            return {}
        with redis.Redis.from_url(self.redis_url) as client:
            return dict(client.info("everything"))


def measure(samples: Samples, folder: Path, rounds: int, say: Callable[[str], None]) -> None:
    """Adds the figures of each setup, in each round. All setups have the same agents, one a client."""
    with mock(folder) as letta, ExitStack() as processes:
        letta.control(agents=[f"bench-{number}" for number in range(CLIENTS)])
        setups = [processes.enter_context(_running(setup, url(letta.port), folder)) for setup in SETUPS]
        tools.Client(setups[0].ports[0], "bench-0").say(HELLO, CODING_TOOLS)
        letta.control(same_tools_as="bench-0")
        for setup in setups:
            _ask(setup, CLIENTS, 1.0)
        pids = [letta.pid, *(pid for setup in setups for pid in setup.pids)]
        others = OtherProcesses([*pids, *(int(setup.info()["process_id"]) for setup in setups if setup.redis_url)])
        for number in range(rounds):
            for setup in random.sample(setups, len(setups)) if number else setups:
                others.begin()
                samples.add(setup.name, BRIDGE, {**_one_client(setup), **_ten_clients(setup)})
                samples.busy.append(others.share())
            say(f"Redis: round {number + 1} of {rounds}")


@contextmanager
def _running(setup: Setup, letta_url: str, folder: Path) -> Iterator[Running]:
    with ExitStack() as parts:
        settings = {"WEB_CONCURRENCY": str(setup.workers)}
        redis_url = parts.enter_context(Redis()).url if setup.with_redis else ""
        if redis_url:
            settings["REDIS_URL"] = redis_url
        services = [parts.enter_context(bridge(letta_url, folder, **settings)) for _ in range(setup.bridges)]
        yield Running(setup.name, [*map(bridge_port, services)], [service.pid for service in services], redis_url)


def _one_client(setup: Running) -> Measured:
    result = _ask(setup, 1, SECONDS)
    return {"one client, p50 ms": percentile(result.times, 50) * 1000}


def _ten_clients(setup: Running) -> Measured:
    before, spent = setup.info(), sum(map(cpu_seconds, setup.pids))
    result = _ask(setup, CLIENTS, SECONDS)
    spent = sum(map(cpu_seconds, setup.pids)) - spent
    after = setup.info()
    found = {
        "ten clients, turns/s": len(result.times) / result.seconds,
        "ten clients, CPU ms a turn": spent / result.all_requests * 1000,
    }
    if setup.redis_url:
        asked, redis_spent = (amount(after) - amount(before) for amount in (_round_trips, _redis_cpu))
        found["Redis: round trips a turn"] = asked / result.all_requests
        found["Redis: CPU ms a turn"] = redis_spent / result.all_requests * 1000
    return found


def _ask(setup: Running, clients: int, seconds: float) -> LoadResult:
    """Has so many clients ask, each its own agent, and each the next bridge."""
    requests = [
        bridge_request(setup.ports[number % len(setup.ports)], chat(f"bench-{number}", ONE_DELTA))
        for number in range(clients)
    ]
    return run(Load(setup.ports[0], requests, seconds, warm_up=0.2, more_ports=setup.ports[1:]))


def _round_trips(info: Mapping[str, float]) -> float:
    """Returns how often Redis has read from its clients: what a bridge sends at once is read at once. What heartbeats,
    records and renewed leases send counts, too.
    """
    return float(info["total_reads_processed"])


def _redis_cpu(info: Mapping[str, float]) -> float:
    return float(info["used_cpu_sys"]) + float(info["used_cpu_user"])
