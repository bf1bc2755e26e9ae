"""Messages to agents that are named elsewhere than in an agent's path: of groups, and in Letta's chat completions."""

from __future__ import annotations

import threading

import pytest
from flask.testing import FlaskClient

from bridge.turn import Stopped, Text
from tests.fakes import FakeGateway
from tests.letta_actor import READ, LettaClient

GROUP = "groups/group-1/messages"
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_LETTA_API": "all", "BRIDGE_TOOL_WAIT": "30"}


@pytest.fixture
def pair(client: FlaskClient, letta: FakeGateway) -> list[LettaClient]:
    """Returns clients of two agents, whose group is what Letta answers first."""
    agents = [letta.agents_named("Ada")[0], letta.has_agent("Bob")]
    clients = [LettaClient(client, agent.id) for agent in agents]
    for one in clients:
        one.say("Hi")
    letta.will_answer(200, {"id": "group-1", "agent_ids": [agent.id for agent in agents]})
    letta.will_answer(200, {"messages": []})
    return clients


def test_the_agents_of_a_group_have_no_tools_of_clients_in_its_message(
    pair: list[LettaClient], letta: FakeGateway
) -> None:
    assert pair[0].send(GROUP, HELLO).json == {"messages": []}
    assert [letta.agent(one.agent_id).tools for one in pair] == [(), ()]
    assert [call.path for call in letta.forwarded] == ["/v1/groups/group-1", f"/v1/{GROUP}"]


def test_a_message_to_a_group_waits_for_the_turns_of_its_agents(pair: list[LettaClient], letta: FakeGateway) -> None:
    during: list[int] = []
    sending = threading.Thread(target=lambda: during.append(pair[0].send(GROUP, HELLO).status_code))
    letta.will(sending.start, lambda: sending.join(0.3), lambda: during.append(0), Text("Hi"), Stopped("end_turn"))
    LettaClient(pair[1].client.application.test_client(), pair[1].agent_id).say("Hi")
    sending.join()
    assert during == [0, 200]


def test_client_tools_for_a_group_are_refused(pair: list[LettaClient], letta: FakeGateway) -> None:
    refused = pair[0].send(GROUP, {**HELLO, "client_tools": [READ]})
    assert (refused.status_code, (refused.json or {})["param"]) == (400, "client_tools")
    assert letta.forwarded == []


@pytest.mark.parametrize("named", ["path", "model"])
def test_letta_s_chat_completions_are_messages_to_the_agent(
    pair: list[LettaClient], letta: FakeGateway, named: str
) -> None:
    letta.will_answer(200, {})
    agent_id = pair[1].agent_id
    path = "chat/completions" if named == "model" else f"voice-beta/{agent_id}/chat/completions"
    pair[0].send(path, {**HELLO, **({"model": agent_id} if named == "model" else {})})
    assert [len(letta.agent(one.agent_id).tools) for one in pair] == [1, 0]
