"""Faults of everything around the service: a real Letta behind the fault proxy, killed processes, a real Redis.

`make test` tries one case of each fault, `make test-faults` sets TEST_FAULTS=all and tries all.
"""

from __future__ import annotations

import pytest

from testbed.versions import agent_types
from tests.faults.scale import FULL
from tests.faults.table import Cases
from tests.real.conftest import agent, model, world

__all__ = ["agent", "model", "world"]

VERSIONS = ("0.11.7", "0.16.1", "0.16.8") if FULL else ("0.16.1",)
# One for each way of catching a call there. Older servers have neither.
TYPES = ("letta_v1_agent", "memgpt_v2_agent")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    versions = getattr(metafunc.module, "VERSIONS", VERSIONS)
    if "agent_type" in metafunc.fixturenames:
        types = TYPES if FULL or not metafunc.definition.get_closest_marker("one_type") else TYPES[:1]
        pairs = [
            (version, kind)
            for version in versions
            for kind in [one for one in types if one in agent_types(version)] or agent_types(version)[:1]
        ]
        metafunc.parametrize(("world", "agent_type"), pairs, indirect=["world"], scope="session")
    elif "world" in metafunc.fixturenames:
        metafunc.parametrize("world", versions, indirect=True, scope="session")


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Cases:
    """Counts the cases of a test, for the table at the end."""
    return Cases(request.node)
