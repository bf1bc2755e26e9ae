"""`python -m bench`: every leg through every lane, round by round in random order, and one table of it all."""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import asked, growth, machine, real, starts, tools
from bench.errors import BenchFailed
from bench.lanes import AGENTS, LANES, Leg
from bench.parties import (
    LITELLM,
    Mock,
    bridge,
    bridge_port,
    bridge_to_start,
    first_answer,
    installed_litellm,
    litellm,
    mock,
    url,
)
from bench.plot import svg
from bench.samples import BRIDGE, DIRECT, Samples
from bench.samples import LITELLM as THIRD
from bench.table import table, trust
from testbed.cache import Cache
from testbed.errors import TestbedError

ROUNDS = 3
STARTS = 3
DOCUMENT = Path(__file__).parent.parent / "docs" / "performance.md"
PLOT = DOCUMENT.with_suffix(".svg")
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HELLO = "Hello.\n!bench say 1"


@dataclass(frozen=True, slots=True)
class Wanted:
    rounds: int
    with_litellm: bool
    with_letta: bool
    only: Sequence[str]
    write: bool


def main() -> None:
    wanted = _wanted()
    begun = time.monotonic()
    samples = Samples([lane.name for lane in LANES])
    folder = Cache.default().root / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(dir=folder) as place:
            _all_lanes(samples, Path(place), wanted, folder)
    except (BenchFailed, TestbedError, subprocess.CalledProcessError, OSError) as fault:
        _say(f"\n{table(samples)}")
        sys.exit(f"\nmake bench: {fault}")
    report = _report(samples, wanted, time.monotonic() - begun)
    _say(f"\n{report}")
    (folder / "figures.json").write_text(json.dumps(samples.as_json(), indent=1))
    (folder / "figures.md").write_text(report)
    (folder / "figures.svg").write_text(svg(samples))
    if wanted.write:
        _write(report, svg(samples))


def _wanted() -> Wanted:
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without-litellm", action="store_true")
    parser.add_argument("--without-letta", action="store_true", help="leave out the lanes against a real Letta")
    parser.add_argument("--only", action="append", default=[], help="one of: rounds, starts, tools, growth, real")
    parser.add_argument("--write", action="store_true", help="put table and plot into docs/")
    chosen = parser.parse_args()
    return Wanted(chosen.rounds, not chosen.without_litellm, not chosen.without_letta, chosen.only, chosen.write)


def _all_lanes(samples: Samples, place: Path, wanted: Wanted, cache: Path) -> None:
    def runs(part: str) -> bool:
        return not wanted.only or part in wanted.only

    if runs("rounds") or runs("starts"):
        _rounds(samples, place, wanted, cache)
    if runs("tools"):
        _tool_lanes(samples, place)
    if runs("real") and wanted.with_letta:
        for lane, measured in real.lanes(place, _say).items():
            samples.add(f"real Letta, {lane}", DIRECT, {"ms": measured["by hand ms"]})
            samples.add(f"real Letta, {lane}", BRIDGE, {"ms": measured["bridge ms"]})
    if runs("growth"):
        _growth_lanes(samples, place)


# --- rounds ---------------------------------------------------------------------------------------------


def _rounds(samples: Samples, place: Path, wanted: Wanted, cache: Path) -> None:
    with ExitStack() as parties:
        letta = parties.enter_context(mock(place))
        ids = letta.tell(agents=[f"bench-{number}" for number in range(AGENTS)])["ids"]
        if not wanted.only or "starts" in wanted.only:
            _starts(samples, letta, place)
        legs = [Leg(DIRECT, letta.port, letta.pid, lambda n, text, stream: _direct(letta, ids, n, text, stream))]
        service = parties.enter_context(bridge(url(letta.port), place))
        legs.append(_bridge_leg(bridge_port(service), service.pid))
        _alike(letta, bridge_port(service))
        if wanted.with_litellm:
            legs.append(parties.enter_context(_litellm_leg(samples, letta, place, cache)))
        if not wanted.only or "rounds" in wanted.only:
            _in_random_order(samples, legs, wanted.rounds)


def _in_random_order(samples: Samples, legs: Sequence[Leg], rounds: int) -> None:
    for leg in legs:
        for lane in LANES[:2]:
            lane.measure(leg)
    neighbours = machine.Neighbours([leg.pid for leg in legs])
    for number in range(rounds):
        parts = [(lane, leg) for lane in LANES for leg in legs]
        random.shuffle(parts)
        for lane, leg in parts:
            neighbours.begin()
            measured = lane.measure(leg)
            samples.busy.append(neighbours.share())
            samples.add(lane.name, leg.name, measured)
        _say(f"round {number + 1} of {rounds}; {trust(samples)}")


def _direct(letta: Mock, ids: dict[str, str], number: int, text: str, stream: bool) -> bytes:
    return asked.direct(letta.port, ids[f"bench-{number}"], text, stream=stream)


def _bridge_leg(port: int, pid: int) -> Leg:
    def ask(number: int, text: str, stream: bool) -> bytes:
        return asked.bridged(port, asked.chat(f"bench-{number}", text, stream=stream))

    return Leg(BRIDGE, port, pid, ask)


@contextmanager
def _litellm_leg(samples: Samples, letta: Mock, place: Path, cache: Path) -> Iterator[Leg]:
    _say(f"LiteLLM {LITELLM} is installed, if it is not, and started")
    program = installed_litellm(cache)
    begun = time.monotonic()
    with litellm(program, letta.port, place) as process:

        def ask(number: int, text: str, stream: bool) -> bytes:
            return asked.bridged(process.port, asked.chat("bench", text, stream=stream))

        samples.add("start", THIRD, {"first answer s": time.monotonic() - begun})
        leg = Leg(THIRD, process.port, process.pid, ask)
        samples.add("memory", THIRD, starts.memory(leg))
        yield leg


def _alike(letta: Mock, port: int) -> None:
    """All agents get the toolset that the first one gets from a turn."""
    tools.Client(port, "bench-0").say(HELLO, asked.CODING_TOOLS)
    letta.tell(alike="bench-0")


def _starts(samples: Samples, letta: Mock, place: Path) -> None:
    for number in range(STARTS):
        with TemporaryDirectory(dir=place) as data:
            service = bridge_to_start(url(letta.port), place, data)
            port = bridge_port(service)
            body = asked.chat("bench-0", f"Start {number} of {time.monotonic_ns()}.\n{HELLO}")
            try:
                seconds = first_answer(service.start, port, body)
                letta.tell(alike="bench-0")
                samples.add("start", BRIDGE, {"first answer s": seconds})
                samples.add("memory", BRIDGE, starts.memory(_bridge_leg(port, service.pid)))
            finally:
                service.stop()


# --- tools and growth -----------------------------------------------------------------------------------


def _tool_lanes(samples: Samples, place: Path) -> None:
    with mock(place) as letta:
        letta.tell(agents=["tools"])
        with bridge(url(letta.port), place, WEB_CONCURRENCY="1") as service:
            measured = tools.changes(letta, bridge_port(service), "tools")
        plain = measured.pop("without tools")["calls"]
        for change, figures in measured.items():
            more = {f"{change}: more calls than without tools": figures["calls"] - plain}
            samples.add("50 tools", BRIDGE, {**more, f"{change}: ms at 20 ms a call": figures["ms"]})
    with mock(place, tools.METHODS_LETTA) as letta:
        agents = {method: f"by-{method}" for method in tools.METHODS}
        for method, agent_type in tools.METHODS.items():
            letta.tell(agents=[agents[method]], type=agent_type)
        methods = ", ".join(["auto", *(f"{agent}={method}" for method, agent in agents.items())])
        with bridge(url(letta.port), place, WEB_CONCURRENCY="1", BRIDGE_METHOD=methods) as service:
            for method, figures in tools.whole_calls(letta, bridge_port(service), agents).items():
                told = {f"{method}: calls": figures["calls"], f"{method}: ms at 20 ms a call": figures["ms"]}
                samples.add("call and result", BRIDGE, told)


def _growth_lanes(samples: Samples, place: Path) -> None:
    with mock(place) as letta:
        letta.tell(agents=["grows"])
        with bridge(url(letta.port), place) as service:
            measured = growth.Growth(letta, bridge_port(service), service.pid)
            kinds = {
                "messages in the transcript": measured.of_transcripts,
                "tools in the request": measured.of_tools,
                "agents on the server": measured.of_agents,
                "stubs on the server": measured.of_stubs,
            }
            for kind, grow in kinds.items():
                for size, figures in grow("grows").items():
                    lane = f"{size:,} {kind}"
                    samples.add(lane, BRIDGE, {"ms": figures["ms"], "calls": figures["calls"]})


# --- report ---------------------------------------------------------------------------------------------


def _report(samples: Samples, wanted: Wanted, seconds: float) -> str:
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    command = " ".join(["python -m bench", *sys.argv[1:]]) if sys.argv[1:] else "make bench"
    about = f"`{command}`, {when}, {machine.description()}; {wanted.rounds} rounds, {seconds / 60:.0f} minutes."
    return f"{about} {trust(samples)}\n\n{table(samples)}\n"


def _write(report: str, picture: str) -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{report}{END}{after}")
    PLOT.write_text(picture)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
