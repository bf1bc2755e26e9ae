"""Runs `python -m bench`: measures every system in every scenario, round by round, and prints one table."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import chats, client_requests, documents, growth, machine, real_letta, search, shared_store, tools
from bench.errors import BenchFailed
from bench.memory import memory
from bench.plot import svg
from bench.processes import (
    LITELLM,
    MockProcess,
    bridge,
    bridge_port,
    bridge_to_start,
    first_answer,
    floor,
    installed_litellm,
    litellm,
    mock,
    url,
)
from bench.samples import BRIDGE, DIRECT, FLOOR, Samples
from bench.samples import LITELLM as LITELLM_SYSTEM
from bench.scenarios import AGENTS, SCENARIOS, System
from bench.summary import summary
from bench.table import load_of_others, table
from testbed.cache import Cache
from testbed.errors import TestbedError

ROUNDS = 3
STARTS = 3
HELLO = "Hello.\n!bench say 1"


@dataclass(frozen=True, slots=True)
class Options:
    rounds: int
    with_litellm: bool
    with_letta: bool
    only: Sequence[str]
    write: bool

    def includes(self, part: str) -> bool:
        return not self.only or part in self.only


def main() -> None:
    options = _read_options()
    started = time.monotonic()
    samples = Samples([scenario.name for scenario in SCENARIOS])
    cache = Cache.default().root / "bench"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(dir=cache) as folder:
            _measure_all(samples, Path(folder), options, cache)
    except (BenchFailed, TestbedError, subprocess.CalledProcessError, OSError) as fault:
        _say(f"\n{table(samples)}")
        sys.exit(f"\nmake bench: {fault}")
    about = _about(options, time.monotonic() - started)
    report = _report(samples, about)
    _say(f"\n{report}")
    (cache / "figures.json").write_text(json.dumps(samples.as_json(), indent=1))
    (cache / "figures.md").write_text(report)
    (cache / "figures.svg").write_text(svg(samples))
    if options.write:
        documents.write(report, f"{about}\n\n{summary(samples)}\n", svg(samples))


def _read_options() -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without-litellm", action="store_true")
    parser.add_argument("--without-letta", action="store_true", help="leave out the scenarios against a real Letta")
    parser.add_argument(
        "--only", action="append", default=[], help="one of: rounds, starts, tools, growth, search, chats, redis, real"
    )
    parser.add_argument("--write", action="store_true", help="put tables and plot into docs/ and bench/README.md")
    chosen = parser.parse_args()
    return Options(chosen.rounds, not chosen.without_litellm, not chosen.without_letta, chosen.only, chosen.write)


def _measure_all(samples: Samples, folder: Path, options: Options, cache: Path) -> None:
    if options.includes("rounds") or options.includes("starts"):
        _measure_rounds(samples, folder, options, cache)
    if options.includes("tools"):
        _measure_tools(samples, folder)
    if options.includes("real") and options.with_letta:
        for scenario, (direct_ms, bridge_ms) in real_letta.measure(folder, _say).items():
            samples.add(f"real Letta, {scenario}", DIRECT, {"ms": direct_ms})
            samples.add(f"real Letta, {scenario}", BRIDGE, {"ms": bridge_ms})
    lanes: dict[str, Callable[[], None]] = {
        "growth": lambda: _measure_growth(samples, folder),
        "search": lambda: search.measure(samples, folder),
        "chats": lambda: chats.measure(samples, folder),
        "redis": lambda: shared_store.measure(samples, folder, options.rounds, _say),
    }
    for name, measure in lanes.items():
        if options.includes(name):
            measure()


# --- rounds ---------------------------------------------------------------------------------------------


def _measure_rounds(samples: Samples, folder: Path, options: Options, cache: Path) -> None:
    with ExitStack() as processes:
        letta = processes.enter_context(mock(folder))
        ids = letta.control(agents=[f"bench-{number}" for number in range(AGENTS)])["ids"]
        if options.includes("starts"):
            _measure_starts(samples, letta, folder)
        systems = [System(DIRECT, letta.port, letta.pid, lambda n, text, stream: _direct(letta, ids, n, text, stream))]
        least = processes.enter_context(floor(url(letta.port), folder))
        systems.append(_chat_system(FLOOR, least.port, least.pid))
        service = processes.enter_context(bridge(url(letta.port), folder))
        systems.append(_chat_system(BRIDGE, bridge_port(service), service.pid))
        _give_all_agents_the_tools(letta, bridge_port(service))
        if options.with_litellm:
            systems.append(processes.enter_context(_litellm_system(samples, letta, folder, cache)))
        if options.includes("rounds"):
            _in_random_order(samples, systems, options.rounds)


def _in_random_order(samples: Samples, systems: Sequence[System], rounds: int) -> None:
    for system in systems:
        for scenario in SCENARIOS[:2]:
            scenario.measure(system)
    others = machine.OtherProcesses([system.pid for system in systems])
    for number in range(rounds):
        pairs = [(scenario, system) for scenario in SCENARIOS for system in systems]
        random.shuffle(pairs)
        for scenario, system in pairs:
            others.begin()
            measured = scenario.measure(system)
            samples.busy.append(others.share())
            samples.add(scenario.name, system.name, measured)
        _say(f"round {number + 1} of {rounds}; {load_of_others(samples)}")


def _direct(letta: MockProcess, ids: dict[str, str], number: int, text: str, stream: bool) -> bytes:
    return client_requests.direct_request(letta.port, ids[f"bench-{number}"], text, stream=stream)


def _chat_system(name: str, port: int, pid: int) -> System:
    def ask(number: int, text: str, stream: bool) -> bytes:
        return client_requests.bridge_request(port, client_requests.chat(f"bench-{number}", text, stream=stream))

    return System(name, port, pid, ask)


@contextmanager
def _litellm_system(samples: Samples, letta: MockProcess, folder: Path, cache: Path) -> Iterator[System]:
    _say(f"installing (if needed) and starting LiteLLM {LITELLM}")
    program = installed_litellm(cache)
    started = time.monotonic()
    with litellm(program, letta.port, folder) as process:

        def ask(number: int, text: str, stream: bool) -> bytes:
            return client_requests.bridge_request(process.port, client_requests.chat("bench", text, stream=stream))

        samples.add("start", LITELLM_SYSTEM, {"first answer s": time.monotonic() - started})
        system = System(LITELLM_SYSTEM, process.port, process.pid, ask)
        samples.add("memory", LITELLM_SYSTEM, memory(system))
        yield system


def _give_all_agents_the_tools(letta: MockProcess, port: int) -> None:
    """Gives all agents the toolset that the first one gets from a turn."""
    tools.Client(port, "bench-0").say(HELLO, client_requests.CODING_TOOLS)
    letta.control(same_tools_as="bench-0")


def _measure_starts(samples: Samples, letta: MockProcess, folder: Path) -> None:
    for number in range(STARTS):
        with TemporaryDirectory(dir=folder) as data:
            service = bridge_to_start(url(letta.port), folder, data)
            port = bridge_port(service)
            body = client_requests.chat("bench-0", f"Start {number} of {time.monotonic_ns()}.\n{HELLO}")
            try:
                seconds = first_answer(service.start, port, body)
                letta.control(same_tools_as="bench-0")
                samples.add("start", BRIDGE, {"first answer s": seconds})
                samples.add("memory", BRIDGE, memory(_chat_system(BRIDGE, port, service.pid)))
            finally:
                service.stop()


# --- tools and growth -----------------------------------------------------------------------------------


def _measure_tools(samples: Samples, folder: Path) -> None:
    with mock(folder) as letta:
        letta.control(agents=["tools"])
        with bridge(url(letta.port), folder, WEB_CONCURRENCY="1") as service:
            measured = tools.changes(letta, bridge_port(service), "tools")
        plain = measured.pop("without tools")["calls"]
        for change, figures in measured.items():
            more = {f"{change}: more calls than without tools": figures["calls"] - plain}
            samples.add("50 tools", BRIDGE, {**more, f"{change}: ms at 20 ms a call": figures["ms"]})
    with mock(folder, tools.METHODS_LETTA) as letta:
        agents = {method: f"by-{method}" for method in tools.METHODS}
        for method, agent_type in tools.METHODS.items():
            letta.control(agents=[agents[method]], type=agent_type)
        methods = ", ".join(["auto", *(f"{agent}={method}" for method, agent in agents.items())])
        with bridge(url(letta.port), folder, WEB_CONCURRENCY="1", BRIDGE_METHOD=methods) as service:
            for method, figures in tools.whole_calls(letta, bridge_port(service), agents).items():
                named = {f"{method}: calls": figures["calls"], f"{method}: ms at 20 ms a call": figures["ms"]}
                samples.add("call and result", BRIDGE, named)


def _measure_growth(samples: Samples, folder: Path) -> None:
    with mock(folder) as letta:
        letta.control(agents=["grows"])
        with bridge(url(letta.port), folder, BRIDGE_TOOL_SEARCH="0") as service:
            measured = growth.Growth(letta, bridge_port(service), "grows")
            kinds = {
                "messages in the transcript": measured.of_transcripts,
                "tools in the request": measured.of_tools,
                "agents on the server": measured.of_agents,
                "stubs on the server": measured.of_stubs,
            }
            for kind, measure in kinds.items():
                for size, figures in measure().items():
                    samples.add(f"{size:,} {kind}", BRIDGE, figures)
        with bridge(url(letta.port), folder, BRIDGE_HISTORY_LIMIT="0") as service:
            for size, figures in growth.Growth(letta, bridge_port(service), "grows").of_transcripts().items():
                without = {"ms if old messages are not compared": figures["ms"]}
                samples.add(f"{size:,} messages in the transcript", BRIDGE, without)


# --- report ---------------------------------------------------------------------------------------------


def _report(samples: Samples, about: str) -> str:
    return f"{about} {load_of_others(samples)}\n\n{table(samples)}\n"


def _about(options: Options, seconds: float) -> str:
    """Says when, where and how the figures were measured."""
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    command = " ".join(["python -m bench", *sys.argv[1:]]) if sys.argv[1:] else "make bench"
    return f"`{command}`, {when}, {machine.description()}; {options.rounds} rounds, {seconds / 60:.0f} minutes."


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
