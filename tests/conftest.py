"""The service around an in-memory Letta, and a client of it."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from flask import Flask
from flask.testing import FlaskClient
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from app import create_app
from bridge.config import Settings, read_settings
from bridge.store import redis
from bridge.store import sqlite as local
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.faults.table import FAULT, fault_of, outcomes, table
from tests.real.choice import IS_WHOLE
from tests.waiting import SOON

pytest_plugins = ["tests.second_try", "tests.testbed_unchanged"]

# The same examples in every run, and as much time for each as a busy machine needs.
hypothesis.settings.register_profile(
    "suite",
    derandomize="HYPOTHESIS_EXAMPLES" not in os.environ,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")


class ByServer(LoadScopeScheduling):
    """Keeps the tests of one Letta version together in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        version = re.search(r"\[.*?\b(\d+\.\d+\.\d+)\b", nodeid)
        if version:
            return f"{nodeid.partition('::')[0].rpartition('/')[0]} {version[1]}"
        return "testbed" if nodeid.startswith("tests/real/") else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServer | None:
    return ByServer(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests with the mark `full` are for the runs that leave nothing out."""
    left_out = [] if IS_WHOLE else [item for item in items if item.get_closest_marker("full")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay until the end. Garbage collections need not search them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Adds the fault of the test to its report, even if its fixtures fail."""
    item.user_properties.clear()  # of a first try
    fault = fault_of(item)
    if fault is not None:
        item.user_properties.append((FAULT, fault))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints a table of the faults that were tried."""
    lines = table(outcomes(terminalreporter.stats))
    if lines:
        terminalreporter.section("faults")
    for line in lines:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Waits longer for a store than a service does: a busy machine may stop the store for a while."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(redis, "TIMEOUT_SECONDS", SOON)
        patched.setattr(local, "WAIT_FOR_OTHERS", SOON)
        yield


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of the settings. A test may change them before it uses `settings`."""
    return {
        "LETTA_BASE_URL": "http://letta.test:8283",
        "BRIDGE_ALLOW_ANONYMOUS": "1",
        "BRIDGE_DATA_DIR": str(tmp_path),
        "BRIDGE_TOOL_WAIT": "0.1",
    }


@pytest.fixture
def parameters() -> dict[str, Any]:
    """The settings that have no variable. A test may change them before it uses `settings`."""
    return {}


@pytest.fixture
def settings(environment: dict[str, str], parameters: dict[str, Any]) -> Settings:
    return read_settings(environment, **parameters)


@pytest.fixture
def letta() -> FakeGateway:
    """A server with one agent, Ada."""
    fake = FakeGateway()
    fake.has_agent("Ada")
    return fake


@pytest.fixture
def app(settings: Settings, letta: FakeGateway) -> Iterator[Flask]:
    made = create_app(settings, letta)
    yield made
    made.extensions["parts"].recorder.stop()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def chat(client: FlaskClient) -> Chat:
    return Chat(client)
