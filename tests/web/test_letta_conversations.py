"""Conversations of Letta's own, which servers from 0.16.2 on have. They are passed on."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from app import create_app
from bridge import errors
from bridge.chats.lists import METADATA_KEY
from bridge.config import Settings, read_settings
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


# --- conversations of the bridge, each with a context of its own --------------------------------------


@pytest.fixture
def each(environment: dict[str, str], letta: FakeGateway) -> LettaClient:
    settings = read_settings({**environment, "BRIDGE_CHATS": "each"})
    return LettaClient(create_app(settings, letta).test_client(), letta.agents_named("Ada")[0].id)


def new_conversation(ada: LettaClient) -> str:
    return str((ada.send(f"conversations/?agent_id={ada.agent_id}", {}).json or {})["id"])


def test_a_conversation_lists_only_its_own_messages(each: LettaClient, letta: FakeGateway) -> None:
    one, two = new_conversation(each), new_conversation(each)
    each.say("My PIN is 9999.", path=f"conversations/{one}/messages")
    each.say("I am Bob.", path=f"conversations/{two}/messages")
    each.say("Main.")
    contexts = [each.get(f"conversations/{conversation}")["in_context_message_ids"] for conversation in (one, two)]
    system = letta.agent(each.agent_id).message_ids[0]
    assert {*contexts[0]} & {*contexts[1]} == {system}
    rows = [
        {"id": row.id, "message_type": row.kind, "content": row.text}
        for row in letta.newest_messages(each.agent_id, 100)
        if row.kind == "user_message"
    ]
    for conversation, own in ((one, "My PIN is 9999."), (two, "I am Bob.")):
        letta.will_answer(200, rows)
        listed = each.get(f"conversations/{conversation}/messages")
        assert [row["content"] for row in listed] == [own]


def test_a_conversation_without_messages_shows_none(settings: Settings, each: LettaClient, letta: FakeGateway) -> None:
    one = LettaClient(create_app(settings, letta).test_client(), each.agent_id)
    one.say("Main.")
    ids = [*letta.agent(one.agent_id).message_ids]
    rows = [{"id": ids[-1], "message_type": "assistant_message", "content": "Hi"}]
    for client, shown, listed in ((each, ids[:1], []), (one, ids, rows)):
        conversation = new_conversation(client)
        assert client.get(f"conversations/{conversation}")["in_context_message_ids"] == shown
        letta.will_answer(200, rows)
        assert client.get(f"conversations/{conversation}/messages") == listed


def test_a_change_of_the_agent_finds_its_main_chat_whatever_the_setting_is_now(
    settings: Settings, each: LettaClient, letta: FakeGateway
) -> None:
    main = letta.agent(each.agent_id).message_ids
    each.say("Hi", path=f"conversations/{new_conversation(each)}/messages")
    assert letta.agent(each.agent_id).message_ids != main
    one = LettaClient(create_app(settings, letta).test_client(), each.agent_id)
    letta.will_answer(200, {})
    one.send(f"agents/{each.agent_id}", {"name": "Ada"}, verb="PATCH")
    assert letta.agent(each.agent_id).message_ids == main


@pytest.mark.parametrize(("status", "deletes"), [(200, True), (200, False), (401, False), (500, True)])
def test_a_reset_that_deletes_the_messages_of_all_chats_removes_their_lists(
    each: LettaClient, letta: FakeGateway, status: int, deletes: bool
) -> None:
    each.say("I am Ann.", path=f"conversations/{new_conversation(each)}/messages")
    letta.will_answer(status, {})
    (kept,) = letta._agents.values()
    if deletes:
        kept.messages = kept.messages[:1]
    each.send(f"agents/{each.agent_id}/reset-messages", {}, verb="PATCH")
    agent = letta.agent(each.agent_id)
    assert (METADATA_KEY in agent.metadata) == (status != 200 or not deletes)
    assert agent.message_ids == agent.message_ids[:1]


def test_a_change_for_a_client_that_left_while_a_run_is_waited_for_is_not_made(
    each: LettaClient, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    each.say("I am Ann.", path=f"conversations/{new_conversation(each)}/messages")
    letta.will(Text("Half"), errors.LettaUnreachable("cut", code="stream_cut"))
    each.send(f"conversations/{new_conversation(each)}/messages", HELLO)
    current = letta.agent(each.agent_id).message_ids
    letta.under_way = ["run-1"]
    monkeypatch.setattr("bridge.web.hangup.client_is_gone", lambda _: True)
    each.send(f"agents/{each.agent_id}", {"name": "Ada"}, verb="PATCH")
    assert letta.agent(each.agent_id).message_ids == current
    assert letta.forwarded == []


def test_a_message_without_tools_is_heard_in_its_own_conversation(each: LettaClient, letta: FakeGateway) -> None:
    one = new_conversation(each)
    each.say("I am Ann.", path=f"conversations/{one}/messages")
    each.say("Main.")
    letta.will_answer(200, {"messages": [], "stop_reason": {"stop_reason": "end_turn"}, "usage": {}})
    body = {"messages": [{"role": "user", "content": "Again."}], "streaming": False}
    assert each.send(f"conversations/{one}/messages", body).status_code == 200
    own = each.get(f"conversations/{one}")["in_context_message_ids"]
    assert [*letta.agent(each.agent_id).message_ids] == own
