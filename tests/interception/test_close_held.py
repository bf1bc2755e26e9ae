"""The operator closes the client's call that holds an agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.interception.close_held import close_held_calls
from bridge.letta.capabilities import Version
from bridge.letta.gateway import Say
from bridge.turn import AgentCall, Stopped
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway


@pytest.mark.parametrize("version", [(0, 12, 1), (0, 13, 0)])
def test_the_call_is_taken_out_of_the_context_where_letta_takes_no_results(version: Version) -> None:
    """0.12 refuses such results, and on 0.13 they spoil the agent."""
    letta = FakeGateway(replace(FEATURES, version=version, tool_returns=False))
    agent = letta.has_agent("Ada")
    letta.will(AgentCall(new_id("message"), "call_1", "weather", "{}", True), Stopped("requires_approval"))
    list(letta.send_messages(agent.id, [Say("user", "Hello")], by_token=False))
    assert close_held_calls(letta, letta.agent(agent.id)) == ["weather"]
    assert "give_results" not in letta.calls
    letta.will_say("Hi")
    assert list(letta.send_messages(agent.id, [Say("user", "Still there?")], by_token=False))
