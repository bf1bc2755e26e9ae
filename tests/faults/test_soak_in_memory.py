"""Many requests in a row, each with another toolset, with a Letta in memory: nothing may grow."""

from __future__ import annotations

import gc
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app import create_app
from bridge.config import read_settings
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.faults.scale import scaled
from tests.faults.table import Cases
from tests.real.talk import tool

pytestmark = [pytest.mark.servers, pytest.mark.strict]

REQUESTS = scaled(1_000, 10_000)
TOOLSETS = scaled(50, 500)
TOOLS = [tool(f"tool_{number}", f"Tool {number}.", value={"type": "string"}) for number in range(TOOLSETS)]


def state(folder: Path) -> tuple[int, int, int, int]:
    """Returns resident kilobytes, open files, threads and bytes of the store."""
    gc.collect()
    lines = Path("/proc/self/status").read_text().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    stored = sum(file.stat().st_size for file in folder.glob("shared.db*"))
    return resident, len(os.listdir("/proc/self/fd")), threading.active_count(), stored


@pytest.mark.fault("soak before a Letta in memory: requests with changing toolsets")
@pytest.mark.timeout(1800)
def test_nothing_grows_with_a_letta_in_memory(
    letta: FakeGateway, environment: dict[str, str], tmp_path: Path, cases: Cases
) -> None:
    settings = read_settings(environment, stub_idle=3.0, sweep_interval=1.0)
    chat = Chat(create_app(settings, letta).test_client())
    early, most_stubs, started = (0, 0, 0, 0), 0, time.monotonic()
    for number in range(REQUESTS):
        toolset = [TOOLS[number % TOOLSETS], TOOLS[(number * 7 + 1) % TOOLSETS]]
        reply = chat.ask(f"Number {number}", tools=toolset, stream=number % 2 == 0)
        assert reply.text == f"You said: Number {number}"
        most_stubs = max(most_stubs, len(letta._tools))
        forget(letta)
        if number == REQUESTS // 5:
            early = state(tmp_path)
    late = state(tmp_path)
    cases.passed(REQUESTS)
    cases.figure("seconds", f"{time.monotonic() - started:.0f}")
    for name, before, after in zip(
        ("resident kilobytes after a fifth, at the end", "open files", "threads", "bytes of the store"),
        early,
        late,
        strict=True,
    ):
        cases.figure(name, f"{before}, {after}")
    cases.figure("most stubs on Letta", f"{most_stubs}")
    assert late[0] < early[0] * 1.1 + 10_000
    assert late[1] <= early[1] + 5
    assert late[2] <= early[2] + 3
    assert late[3] < 10_000_000
    assert most_stubs <= 2 * TOOLSETS  # while a stub is being deleted, there may be another one for its tool


def forget(letta: FakeGateway) -> None:
    """Clears what the Letta in memory remembers for its tests."""
    letta.calls.clear()
    letta.prompts.clear()
    for kept in letta._agents.values():
        del kept.messages[1:]
        kept.agent = replace(kept.agent, message_ids=kept.agent.message_ids[:1])
