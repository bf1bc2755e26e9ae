"""A Letta server is recognised by an id of its own, whatever address it is called by."""

from __future__ import annotations

import pytest

from bridge.config import read_settings
from bridge.letta.client import LettaServer
from bridge.letta.identity import ServerIdentity
from tests.real.world import World

pytestmark = pytest.mark.real


def id_by(address: str) -> str:
    settings = read_settings({"LETTA_BASE_URL": address}, serving=False)
    return ServerIdentity(LettaServer(settings)).read()


@pytest.fixture(scope="session")
def ids() -> set[str]:
    return set()


def test_a_server_has_one_id_by_any_address_and_no_other_server_has_it(world: World, ids: set[str]) -> None:
    found = {id_by(address) for address in (world.server.base_url, world.proxy.url, f"{world.server.base_url}/")}
    assert len(found) == 1
    assert "" not in found
    assert found.isdisjoint(ids)
    ids |= found
