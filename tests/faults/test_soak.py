"""Many requests in a row, each with another toolset: nothing may grow."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.service import Service
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import tool
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.strict]

# In full this takes an hour on one server.
VERSIONS = ("0.16.1",)
# TEST_SOAK sets the number. A real Letta needs a third of a second for each on an idle machine.
REQUESTS = int(os.environ.get("TEST_SOAK") or scaled(20, 10_000))
TOOLSETS = scaled(20, 500)
# Each toolset has two of these tools, so toolsets share tools, as those of real clients do.
TOOLS = [tool(f"tool_{number}", f"Tool {number}.", value={"type": "string"}) for number in range(TOOLSETS)]
AGENTS = 4
# The context is emptied, because its growth is not the bridge's.
EMPTIED_EVERY = 100


@dataclass(frozen=True, slots=True)
class Measured:
    """Sums over all workers, and the size of the store, which they share."""

    kilobytes: int
    files: int
    threads: int
    store_bytes: int


@pytest.mark.fault("soak: requests in a row with changing toolsets")
@pytest.mark.timeout(7200)
def test_nothing_grows_with_a_real_letta(world: World, tmp_path: Path, cases: Cases) -> None:
    agents = [world.agent("letta_v1_agent") for _ in range(AGENTS)]
    befores = [agent.fingerprint() for agent in agents]
    sweeps = {"stub_idle": 20.0, "sweep_interval": 20.0}
    with world.start_bridge(sweeps, BRIDGE_DATA_DIR=str(tmp_path), BRIDGE_TOOL_WAIT="0") as bridge:
        started = time.monotonic()
        ask(agents, 0, REQUESTS // 5, bridge)
        early, most_stubs = measured(bridge, tmp_path), stubs(world)
        for part in range(1, 5):
            ask(agents, REQUESTS // 5 * part, REQUESTS // 5 * (part + 1), bridge)
            most_stubs = max(most_stubs, stubs(world))
        late = measured(bridge, tmp_path)
        seconds = time.monotonic() - started
        for agent, before in zip(agents, befores, strict=True):
            assert agent.ask("bye", bridge=bridge).text == "You said: bye"
            assert agent.fingerprint() == before
            agent.delete()
    cases.passed(REQUESTS)
    for name, value in (
        ("seconds", f"{seconds:.0f}"),
        ("resident kilobytes after a fifth, at the end", f"{early.kilobytes}, {late.kilobytes}"),
        ("open files", f"{early.files}, {late.files}"),
        ("threads", f"{early.threads}, {late.threads}"),
        ("bytes of the store", f"{early.store_bytes}, {late.store_bytes}"),
        ("most stubs on Letta", f"{most_stubs} of {TOOLSETS}"),
    ):
        cases.figure(name, value)
    assert late.files <= early.files + 20
    assert late.threads <= early.threads + 10
    assert late.store_bytes < 20_000_000
    assert late.kilobytes < early.kilobytes * 1.25 + 20_000
    assert most_stubs <= TOOLSETS


def ask(agents: list[Agent], first: int, last: int, bridge: Service) -> None:
    for number in range(first, last):
        agent = agents[number % AGENTS]
        if number % EMPTIED_EVERY < AGENTS:
            agent.world.model.clear()
            agent.world.letta("PATCH", f"/v1/agents/{agent.id}/reset-messages", {})
        toolset = [TOOLS[number % TOOLSETS], TOOLS[(number * 7 + 1) % TOOLSETS]]
        reply = agent.ask(f"Number {number}\n!say {number}", tools=toolset, stream=number % 2 == 0, bridge=bridge)
        assert reply.text == str(number), (number, reply.error)


def measured(bridge: Service, folder: Path) -> Measured:
    pids = [str(pid) for pid in bridge.workers]
    statuses = [Path(f"/proc/{pid}/status").read_text().splitlines() for pid in pids]
    return Measured(
        kilobytes=sum(_number(lines, "VmRSS:") for lines in statuses),
        files=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids),
        threads=sum(_number(lines, "Threads:") for lines in statuses),
        store_bytes=sum(file.stat().st_size for file in folder.glob("shared.db*")),
    )


def _number(lines: list[str], name: str) -> int:
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def stubs(world: World) -> int:
    listed = world.letta("GET", "/v1/tools/", limit=100_000)
    return sum(one["name"].startswith("tool_") for one in listed)
