"""The adapter for real servers behaves as the in-memory gateway does; see `../gateway_contract.py`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bridge.config import read_settings
from bridge.letta import connection
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.letta.gateway import Gateway
from tests.gateway_contract import GatewayContract, PreparedTurn, new_name
from tests.real.world import Agent, World

pytestmark = [pytest.mark.real, pytest.mark.one_type]


class RealScene:
    def __init__(self, world: World, agent_type: str) -> None:
        self.world = world
        self.agent_type = agent_type
        settings = read_settings({"LETTA_BASE_URL": world.server.base_url, "BRIDGE_ALLOW_ANONYMOUS": "1"})
        self.connection = Connection(settings)
        self.gateway: Gateway = LettaServer(settings, self.connection)
        self.made: list[Agent] = []
        self.agent_name = new_name()
        self.agent_id = self.make_agent(self.agent_name)

    def make_agent(self, name: str) -> str:
        self.made.append(self.world.agent(self.agent_type, name=name, tools=["core_memory_append"]))
        return self.made[-1].id

    def to_say(self, text: str) -> str:
        return f"!say {_one_line(text)}"

    def to_note_first(self, text: str) -> str:
        return f'!call core_memory_append {{"label": "human", "content": "Likes tea."}} !next !say {_one_line(text)}'

    def to_fail(self) -> str:
        return "!status 500"

    def shown(self, text: str) -> bool:
        return self.world.model.requests()[-1].contains(text)


def _one_line(text: str) -> str:
    r"""The script's own way to write a text of several lines; the backslashes of the text stay what they are."""
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{quoted}"'


class TestRealServers(GatewayContract):
    @pytest.fixture
    def scene(self, world: World, agent_type: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PreparedTurn]:
        """Lists come in pages of two."""
        monkeypatch.setattr(connection, "PAGE_SIZE", 2)
        world.model.clear()
        made = RealScene(world, agent_type)
        yield made
        made.connection.close()
        for agent in made.made:
            agent.delete()
        assert not world.model.take_refusals()
