"""Real Letta servers for the clients."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.proxy import FaultProxy
from testbed.versions import agent_types
from tests.clients.process import Scratch
from tests.clients.wire import LettaWire, Wire
from tests.real.choice import wanted_versions
from tests.real.conftest import agent, model, world
from tests.real.world import World

__all__ = ["agent", "letta_wire", "model", "scratch", "wire", "world"]

# The last servers of the two long-lived lines: the V2 loop, and the loop of letta_v1_agent. A module may name others.
USUAL = ("0.11.7", "0.16.1")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests get the newest type of agent of each server; with the mark `each_loop`, one type for each agent loop."""
    if "agent_type" in metafunc.fixturenames:
        usual = getattr(metafunc.module, "SERVERS", USUAL)
        versions = wanted_versions() if os.environ.get("TEST_LETTA") else usual
        # The oldest type runs in the loop of the second.
        first = 1 if metafunc.definition.get_closest_marker("each_loop") else -1
        pairs = [(version, kind) for version in versions for kind in agent_types(version)[first:]]
        metafunc.parametrize(("world", "agent_type"), pairs, indirect=["world"], scope="session")


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch.below(tmp_path)


@pytest.fixture
def wire(world: World) -> Iterator[Wire]:
    with FaultProxy(world.bridge.url) as proxy:
        yield Wire(proxy)


@pytest.fixture
def letta_wire(world: World, tmp_path: Path) -> Iterator[LettaWire]:
    with (
        world.start_bridge(BRIDGE_LETTA_API="all", BRIDGE_DATA_DIR=str(tmp_path / "data")) as bridge,
        FaultProxy(bridge.url) as proxy,
    ):
        yield LettaWire(proxy)
