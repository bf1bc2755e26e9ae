"""The in-memory server passes the tests that real ones pass in `real/test_gateway_contract_real.py`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge import errors
from bridge.letta.capabilities import Version
from bridge.letta.gateway import Gateway
from bridge.turn import AgentCall, AgentReturn, Stopped, Text, Used
from tests.fakes import FEATURES, FakeGateway
from tests.gateway_contract import GatewayContract, PreparedTurn


class FakeScene:
    def __init__(self, version: Version) -> None:
        self.letta = FakeGateway(replace(FEATURES, version=version))
        self.gateway: Gateway = self.letta
        ada = self.letta.has_agent("Ada Lovelace")
        self.agent_id, self.agent_name = ada.id, ada.name

    def make_agent(self, name: str) -> str:
        return self.letta.has_agent(name).id

    def to_say(self, text: str) -> str:
        self.letta.will_say(text)
        return "Say it."

    def to_note_first(self, text: str) -> str:
        call = AgentCall("message-1", "call_1", "core_memory_append", "{}")
        result = AgentReturn("message-2", "call_1", "None")
        self.letta.will(call, result, Text(text), Used(100, 10, 2), Stopped("end_turn"))
        return "Note it."

    def to_fail(self) -> str:
        self.letta.will(errors.ModelFailed("It failed."))
        return "Fail."

    def shown(self, text: str) -> bool:
        prompt = self.letta.prompts[-1]
        return text in "\n".join([*prompt.memory.values(), *prompt.texts, *(one.text for one in prompt.history)])


class TestInMemory(GatewayContract):
    @pytest.fixture(params=[(0, 16, 1), (0, 16, 8)], ids=["0.16.1", "0.16.8"])
    def scene(self, request: pytest.FixtureRequest) -> PreparedTurn:
        return FakeScene(request.param)
