"""A turn that has lost its hold on the agent makes no further call for it."""

from __future__ import annotations

import pytest

from bridge.errors import HoldLost
from bridge.letta.fence import fenced
from bridge.letta.gateway import AgentChange
from tests.fakes import FakeGateway


def test_calls_are_made_only_while_the_turn_holds_its_agent(letta: FakeGateway) -> None:
    lost: list[HoldLost] = []

    def check() -> None:
        if lost:
            raise lost[0]

    agent = letta.agents()[0]
    gateway = fenced(letta, check)
    gateway.change_agent(agent.id, AgentChange(message_ids=()))
    lost.append(HoldLost("lost"))
    before = list(letta.calls)
    with pytest.raises(HoldLost):
        gateway.change_agent(agent.id, AgentChange(message_ids=()))
    assert letta.calls == before
