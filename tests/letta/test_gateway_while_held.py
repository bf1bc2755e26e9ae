"""A turn that has lost its hold on the agent makes no further call for it."""

from __future__ import annotations

import pytest

from bridge.errors import HoldLost
from bridge.letta.gateway import AgentChange
from bridge.letta.gateway_while_held import gateway_while_held
from tests.fakes import FakeGateway


def test_calls_are_made_only_while_the_turn_holds_its_agent(letta: FakeGateway) -> None:
    lost: list[HoldLost] = []

    called: list[str] = []

    def check_hold(method: str) -> None:
        called.append(method)
        if lost:
            raise lost[0]

    agent = letta.agents()[0]
    gateway = gateway_while_held(letta, check_hold)
    gateway.change_agent(agent.id, AgentChange(message_ids=()))
    lost.append(HoldLost("lost"))
    before = list(letta.calls)
    with pytest.raises(HoldLost):
        gateway.change_agent(agent.id, AgentChange(message_ids=()))
    assert letta.calls == before
    assert called == ["change_agent", "change_agent"]
