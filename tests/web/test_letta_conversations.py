"""Conversations of Letta's own, which servers from 0.16.2 on have. They are passed on."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from app import create_app
from bridge.config import Settings
from bridge.turn import Stopped, Text
from tests.fakes import FEATURES, FakeGateway
from tests.letta_actor import READ, LettaClient

HELLO = {"messages": [{"role": "user", "content": "Hi"}], "client_tools": [READ], "streaming": False}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_LETTA_API": "all"}


@pytest.mark.parametrize(("agent_type", "status"), [("letta_v1_agent", 200), ("memgpt_v2_agent", 400)])
def test_client_tools_are_never_passed_over(settings: Settings, agent_type: str, status: int) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 16, 8), client_tools=True))
    ada = LettaClient(create_app(settings, letta).test_client(), letta.has_agent("Ada", agent_type).id)
    letta.will_answer(200, {"id": "conv-1", "agent_id": ada.agent_id})
    letta.will_answer(200, {"messages": []})
    answered = ada.send("conversations/conv-1/messages", HELLO)
    assert answered.status_code == status
    assert len(letta.forwarded) == (2 if status == 200 else 1)
    if status == 400:
        assert (answered.json or {})["param"] == "client_tools"


@pytest.mark.parametrize("action", ["compact", "recompile", "fork"])
def test_a_change_of_a_conversation_waits_for_the_turn_of_its_agent(
    settings: Settings, letta: FakeGateway, action: str
) -> None:
    app = create_app(settings, letta)
    ada, other = (LettaClient(app.test_client(), letta.agents_named("Ada")[0].id) for _ in range(2))
    letta.will_answer(200, {"id": "conv-1", "agent_id": ada.agent_id})
    letta.will_answer(200, {})
    during: list[int] = []
    changing = threading.Thread(
        target=lambda: during.append(other.send(f"conversations/conv-1/{action}", {}).status_code)
    )
    letta.will(changing.start, lambda: changing.join(0.3), lambda: during.append(0), Text("Hi"), Stopped("end_turn"))
    ada.say("Hi")
    changing.join()
    assert during == [0, 200]
