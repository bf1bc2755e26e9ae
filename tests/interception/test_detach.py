from __future__ import annotations

import pytest

from bridge.interception.detach import detach_stubs
from bridge.interception.method import GO_ON
from bridge.letta.gateway import Agent, AgentChange, Say
from bridge.turn import Binding
from tests.toolsets import GATE, Bridge, SharedLetta, offered, rules_of, stub

READ, WRITE = stub("read_file"), stub("write_file")


@pytest.fixture
def letta() -> SharedLetta:
    return SharedLetta()


@pytest.fixture
def ada(letta: SharedLetta) -> Agent:
    """An agent with a tool of its own, and two stubs."""
    agent = letta.has_agent("Ada")
    letta.attaches(agent, letta.has_tool("mine"), rules=[{"type": GATE, "tool_name": "mine"}])
    Bridge(letta).sync(agent, READ, WRITE)
    letta.calls.clear()
    return letta.agent(agent.id)


def detach(letta: SharedLetta, agent: Agent) -> None:
    """Detaches the stub that writes."""
    detach_stubs(letta, agent.id, [Binding(WRITE, letta.tool("write_file").id)])


def test_the_stubs_leave_with_their_rules_and_all_else_stays(letta: SharedLetta, ada: Agent) -> None:
    detach(letta, ada)
    assert [*offered(letta, ada)] == ["mine", "read_file"]
    assert rules_of(letta, ada) == [(GATE, "mine"), (GATE, "read_file")]


def test_an_agent_without_the_stubs_is_not_changed(letta: SharedLetta, ada: Agent) -> None:
    tool_id = letta.tool("write_file").id
    Bridge(letta).sync(ada, READ)
    letta.calls.clear()
    detach_stubs(letta, ada.id, [Binding(WRITE, tool_id)])
    assert letta.calls == ["agent"]


def test_a_tool_that_somebody_put_under_the_stubs_name_stays(letta: SharedLetta, ada: Agent) -> None:
    letta.edits(letta.tool("write_file"), source="def write_file():\n    return 1\n")
    detach(letta, ada)
    assert [*offered(letta, ada)] == ["mine", "read_file", "write_file"]


def test_stubs_stay_if_a_call_of_one_is_in_the_context(letta: SharedLetta, ada: Agent) -> None:
    """The next turn closes the call, which it knows by the attached stub."""
    letta.holds(ada, "write_file")
    detach(letta, ada)
    assert "write_file" in offered(letta, ada)


def test_stubs_stay_if_the_turn_left_a_message_of_the_bridge_in_the_context(letta: SharedLetta, ada: Agent) -> None:
    list(letta.send_messages(ada.id, [Say("system", GO_ON)], by_token=False))
    detach(letta, ada)
    assert "write_file" in offered(letta, ada)
    letta.change_agent(ada.id, AgentChange(message_ids=ada.message_ids))  # the next turn removes it
    detach(letta, ada)
    assert "write_file" not in offered(letta, ada)
