"""Real Letta servers for the tests in this folder: one after the other, each with its own bridge; see `choice.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import tail
from testbed.model import ScriptedModel
from testbed.model.strictness import ModelLimits
from testbed.network import free_port
from testbed.proxy import FaultProxy
from testbed.server import running
from testbed.service import NO_PARAMETERS, Service
from testbed.versions import agent_types
from tests.real.choice import Choice, choice_for
from tests.real.matrix import table
from tests.real.talk import MEMORY_TOOL
from tests.real.toolsets import delete_tool, stubs_on, unique
from tests.real.world import Agent, World

# Letta agents with hundreds of tools are tested, too; OpenAI's own limit is 128.
MOST_TOOLS = 1024


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Servers and types of agent by the marks of the test, and both forms of reply where the test has a `stream`."""
    choice = choice_for({mark.name for mark in metafunc.definition.iter_markers()})
    names, rows = _pairs(metafunc, choice) if "world" in metafunc.fixturenames else ([], [()])
    if "stream" in metafunc.fixturenames:
        rows = [(*row, stream) for row in rows for stream in (choice.streamed(*row) if row[1:] else (False, True))]
        names.append("stream")
    if names:
        ids = ["-".join(map(_id, row)) for row in rows]
        metafunc.parametrize(names, rows, indirect=["world"] if "world" in names else [], scope="session", ids=ids)


def _pairs(metafunc: pytest.Metafunc, choice: Choice) -> tuple[list[str], list[tuple[Any, ...]]]:
    if "agent_type" not in metafunc.fixturenames:
        return ["world"], [(version,) for version in choice.versions()]
    only = getattr(metafunc.module, "AGENT_TYPE", None)
    types = {
        version: [kind for kind in agent_types(version) if kind == only] if only else choice.agent_types(version)
        for version in choice.versions()
    }
    return ["world", "agent_type"], [(version, kind) for version, kinds in types.items() for kind in kinds]


def _id(value: object) -> str:
    return {False: "whole", True: "streamed"}[value] if isinstance(value, bool) else str(value)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure comes with the ends of the logs of Letta and of the bridge."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.failed and isinstance(world, World):
        for name, log in (("Letta", world.server.log_path), ("bridge", world.log)):
            report.sections.append((f"end of the log of the {name}", tail(log.read_text(errors="replace"))))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A run on all servers ends with a table."""
    if os.environ.get("TEST_LETTA") != "all":
        return
    stats = terminalreporter.stats
    bad = [(report.nodeid, False) for kind in ("failed", "error") for report in stats.get(kind, ())]
    good = [(report.nodeid, True) for report in stats.get("passed", ()) if report.when == "call"]
    terminalreporter.section("tests passed, by server and type of agent")
    for line in table([*good, *bad]):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(limits=ModelLimits(max_tools=MOST_TOOLS)) as scripted:
        yield scripted


@pytest.fixture(scope="session")
def world(
    request: pytest.FixtureRequest, model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A server of the test's version, with a bridge of two workers."""
    log = tmp_path_factory.mktemp("bridge") / "bridge.log"
    with (
        running(request.param, model_url=model.url, attach=True, progress=say) as server,
        FaultProxy(server.base_url) as proxy,
    ):

        def start_bridge(parameters: Mapping[str, Any] = NO_PARAMETERS, **settings: str) -> Service:
            return Service(bridge_environment(proxy.url, log.parent, settings), log, parameters)

        with start_bridge() as bridge:
            yield World(server, model, proxy, bridge, start_bridge, log)


@pytest.fixture
def agent(world: World, agent_type: str) -> Iterator[Agent]:
    """A new agent. The scripted model must not have refused any request in the end, unless the test expected it."""
    world.model.clear()
    made = world.agent(agent_type)
    yield made
    made.delete()
    assert not world.model.refusals


@pytest.fixture
def remembering(world: World, agent_type: str) -> Iterator[Agent]:
    """A new agent with a tool of its own, which the server runs."""
    world.model.clear()
    made = world.agent(agent_type, tools=[MEMORY_TOOL])
    yield made
    made.delete()
    assert not world.model.refusals


@pytest.fixture
def part(world: World) -> Iterator[str]:
    """A part of the names of the test's tools. All tools with it are deleted after the test."""
    part = unique("of_test")
    yield part
    for row in stubs_on(world, part):
        delete_tool(world, row["id"])


def bridge_environment(letta_url: str, data: Path, settings: dict[str, str]) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("BRIDGE_", "LETTA_", "REDIS_"))},
        "LETTA_BASE_URL": letta_url,
        "BRIDGE_HOST": "127.0.0.1",
        "BRIDGE_ALLOW_ANONYMOUS": "1",
        "BRIDGE_LETTA_API": "all",
        "BRIDGE_DATA_DIR": str(data),
        "PORT": str(free_port()),
        "WEB_CONCURRENCY": "2",
        # Most tests leave calls open and go on as another client.
        "BRIDGE_TOOL_WAIT": "0",
        **settings,
    }


def say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
