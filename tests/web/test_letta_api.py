"""Letta's own API below /letta: turns with client tools, conversations, and requests that are passed on."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from flask.testing import FlaskClient

from app import create_app
from bridge import errors
from bridge.config import Settings, read_settings
from bridge.dialects.openai.call_ids import CALL_IDS
from bridge.directory import name_with_digits
from bridge.letta.gateway import AgentChange, ForeignAnswer, ForeignCall
from bridge.turn import AgentCall, Reasoning, RunStarted, Stopped, Text, Used
from bridge.web import hangup
from tests.actors import Chat
from tests.fakes import FEATURES, FakeGateway, new_id
from tests.letta_actor import READ, LettaClient, answer, denial
from tests.letta_replies import read_stream
from tests.waiting import SOON, until

KEY = "secret-key-1"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_LETTA_API": "all", "BRIDGE_TOOL_WAIT": "30"}


@pytest.fixture
def ada(client: FlaskClient, letta: FakeGateway) -> LettaClient:
    return LettaClient(client, letta.agents_named("Ada")[0].id)


def will_call(letta: FakeGateway, *texts: str, name: str = "read") -> None:
    """Makes the agent call the client's tool, once for each text, in one step."""
    message_id = new_id("message")
    calls = [
        AgentCall(message_id, f"call_{place}", name, json.dumps({"path": text}), held=True, index=place)
        for place, text in enumerate(texts or ("a.txt",))
    ]
    letta.will(*calls, Used(10, 5), Stopped("requires_approval"))


# --- turns ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_a_tool_of_the_client_is_called_and_answered(ada: LettaClient, letta: FakeGateway, streaming: bool) -> None:
    will_call(letta)
    asked = ada.say("Read a.txt", streaming=streaming)
    (call,) = asked.calls
    assert (call["name"], json.loads(call["arguments"])) == ("read", {"path": "a.txt"})
    assert asked.stop_reason == "requires_approval"
    letta.will_say("It says one.")
    told = ada.say(answer(call["tool_call_id"]), streaming=streaming)
    assert (told.text, told.stop_reason) == ("It says one.", "end_turn")
    assert told.messages[0]["tool_return"] == "one"
    assert letta.prompts[-1].tools == ("read",)
    assert letta.prompts[-1].messages[0].results[0].text == "one"  # type: ignore[union-attr]


def test_two_calls_of_a_step_are_one_request(ada: LettaClient, letta: FakeGateway) -> None:
    will_call(letta, "a", "b")
    (request,) = ada.say("Read").of("approval_request_message")
    ids = [call["tool_call_id"] for call in request["tool_calls"]]
    assert [CALL_IDS.message_and_index(one) for one in ids] == [(request["id"], 0), (request["id"], 1)]
    given = [answer(one)["approvals"][0] for one in ids]
    assert ada.say({"type": "approval", "approvals": given}).stop_reason == "end_turn"


def test_the_agents_words_come_in_messages_of_their_own(ada: LettaClient, letta: FakeGateway) -> None:
    one, two = new_id("message"), new_id("message")
    letta.will(
        RunStarted("run-1"), Reasoning("hm", one), Text("Hel", two), Text("lo", two), Used(1, 2), Stopped("end_turn")
    )
    reply = ada.say("Hi")
    assert [(message["message_type"], message["run_id"]) for message in reply.messages] == [
        ("reasoning_message", "run-1"),
        ("assistant_message", "run-1"),
    ]
    assert reply.text == "Hello"
    assert (reply.usage["prompt_tokens"], reply.usage["completion_tokens"]) == (1, 2)


def test_a_stream_by_token_has_the_pieces(ada: LettaClient, letta: FakeGateway) -> None:
    item = new_id("message")
    letta.will(Text("Hel", item), Text("lo", item), Used(1, 2), Stopped("end_turn"))
    reply = ada.say("Hi", path=f"agents/{ada.agent_id}/messages/stream", stream_tokens=True)
    assert [piece["content"] for piece in reply.pieces] == ["Hel", "lo"]


def test_a_failure_within_a_stream_is_letta_s_error_event(client: FlaskClient, letta: FakeGateway) -> None:
    ada = LettaClient(client, letta.agents_named("Ada")[0].id)
    letta.will(Text("Hel", new_id("message")), errors.ModelFailed("It failed."))
    reply = ada.say("Hi", streaming=True)
    assert (reply.stop_reason, reply.failure and reply.failure["message"]) == ("error", "It failed.")


def test_a_failure_before_the_first_word_has_a_status(ada: LettaClient, letta: FakeGateway) -> None:
    letta.will(errors.ModelOverloaded("Too much."))
    refused = ada.try_to_say("Hi", streaming=True)
    assert (refused.status_code, refused.json) == (
        429,
        {"detail": "Too much.", "code": "model_overloaded", "param": None},
    )


def test_a_message_that_comes_again_by_its_otid_is_the_same_turn(ada: LettaClient, letta: FakeGateway) -> None:
    message = {"role": "user", "content": "Hi", "otid": "one"}
    assert [ada.say(message).text for _ in range(2)] == ["You said: Hi"] * 2
    assert len(letta.prompts) == 1
    ada.say({**message, "otid": "two"})
    assert len(letta.prompts) == 2


def test_a_bridge_that_calls_itself_is_told_so(client: FlaskClient, letta: FakeGateway) -> None:
    """Otherwise, each of its calls would make another one, without end."""
    for path in ("/letta/v1/health/", "/letta/v1/agents/"):
        refused = client.get(path, headers={"Via": "1.0 nginx, 1.1 letta-tool-bridge"})
        assert (refused.status_code, refused.json and refused.json["code"]) == (400, "loop_detected")
    assert letta.calls == []


# --- open calls -------------------------------------------------------------------------------------------


def open_call(ada: LettaClient, letta: FakeGateway, **fields: Any) -> str:
    will_call(letta)
    call_id: str = ada.say("Read a.txt", **fields).calls[0]["tool_call_id"]
    return call_id


@pytest.mark.parametrize("with_tools", [True, False])
def test_a_message_beside_an_open_call_is_refused_as_letta_refuses_it(
    ada: LettaClient, letta: FakeGateway, with_tools: bool
) -> None:
    call_id = open_call(ada, letta)
    refused = ada.try_to_say("Hi", **({} if with_tools else {"client_tools": []}))
    detail = (refused.json or {})["detail"]
    assert (refused.status_code, detail["code"]) == (409, "PENDING_APPROVAL")
    assert "waiting for approval" in detail["message"]
    assert detail["pending_request_id"] == CALL_IDS.message_and_index(call_id)[0]  # type: ignore[index]
    assert ada.say(answer(call_id)).stop_reason == "end_turn"
    assert ada.say("Hi").text == "You said: Hi"


def test_headers_do_not_move_a_call_to_another_conversation(ada: LettaClient, letta: FakeGateway) -> None:
    will_call(letta)
    sent = {"messages": [{"role": "user", "content": "Read"}], "client_tools": [READ]}
    assert ada.send(f"agents/{ada.agent_id}/messages", sent, X_Session_Id="mine").status_code == 200
    assert ada.send(f"agents/{ada.agent_id}/messages", {**sent, "client_tools": []}).status_code == 409


def test_wrong_ids_are_refused_with_the_expected_ones(ada: LettaClient, letta: FakeGateway) -> None:
    call_id = open_call(ada, letta)
    refused = ada.try_to_say(answer(CALL_IDS.id_in_message(new_id("message"), 0)))
    assert refused.status_code == 400
    assert "Invalid tool call IDs" in refused.text
    assert call_id in refused.text


def test_an_answer_without_an_open_call_is_refused(ada: LettaClient) -> None:
    refused = ada.try_to_say(answer(CALL_IDS.id_in_message(new_id("message"), 0)))
    assert (refused.status_code, (refused.json or {})["code"]) == (400, "no_pending_call")


def test_a_stale_call_is_denied_together_with_a_new_message(ada: LettaClient, letta: FakeGateway) -> None:
    call_id = open_call(ada, letta)
    assert ada.say(denial(call_id), {"role": "user", "content": "Go on"}).text == "You said: Go on"
    given = letta.prompts[-1].messages[0].results[0]  # type: ignore[union-attr]
    assert given.text == "Error: request to call tool denied. User reason: stale"
    assert not given.ok


def test_a_call_without_an_answer_holds_nobody_for_ever(
    settings: Settings, environment: dict[str, str], letta: FakeGateway
) -> None:
    quick = read_settings({**environment, "BRIDGE_TOOL_WAIT": "0.1"})
    ada = LettaClient(create_app(quick, letta).test_client(), letta.agents_named("Ada")[0].id)
    open_call(ada, letta)
    other = (ada.send(f"conversations/?agent_id={ada.agent_id}", {}).json or {})["id"]
    assert ada.say("Hi", path=f"conversations/{other}/messages").text == "You said: Hi"


# --- conversations ----------------------------------------------------------------------------------------


@pytest.fixture
def conversation(ada: LettaClient) -> str:
    made = ada.send(f"conversations/?agent_id={ada.agent_id}", {"isolated_block_labels": []}).json or {}
    assert (made["agent_id"], made["in_context_message_ids"]) == (ada.agent_id, [])
    return str(made["id"])


def test_a_conversation_speaks_with_its_agent(ada: LettaClient, conversation: str) -> None:
    reply = ada.say("Hi", path=f"conversations/{conversation}/messages")
    assert (reply.text, reply.pings) == ("You said: Hi", 1)  # a stream, as the request does not say otherwise
    assert ada.get(f"conversations/{conversation}")["agent_id"] == ada.agent_id


def test_a_conversation_is_known_after_a_restart(
    settings: Settings, ada: LettaClient, letta: FakeGateway, conversation: str
) -> None:
    again = LettaClient(create_app(settings, letta).test_client(), ada.agent_id)
    assert again.get(f"conversations/{conversation}")["agent_id"] == ada.agent_id


def test_only_its_own_conversation_shows_an_open_call(ada: LettaClient, letta: FakeGateway, conversation: str) -> None:
    call_id = open_call(ada, letta, path=f"conversations/{conversation}/messages")
    request_id = CALL_IDS.message_and_index(call_id)[0]  # type: ignore[index]
    other = (ada.send(f"conversations/?agent_id={ada.agent_id}", {}).json or {})["id"]
    assert ada.get(f"conversations/{conversation}")["in_context_message_ids"][-1] == request_id
    assert request_id not in ada.get(f"conversations/{other}")["in_context_message_ids"]
    row = {
        "id": request_id,
        "message_type": "approval_request_message",
        "tool_call": {"name": "read", "arguments": "{}", "tool_call_id": "call_0"},
    }
    for path in (f"conversations/{conversation}/messages", f"messages/{request_id}"):
        letta.will_answer(200, [row])
        (shown,) = ada.get(path)
        assert (shown["id"], shown["tool_calls"][0]["tool_call_id"]) == (request_id, call_id)
    assert letta.forwarded[-1].path == f"/v1/agents/{ada.agent_id}/messages"


def test_the_messages_of_a_conversation_are_the_agents(ada: LettaClient, letta: FakeGateway, conversation: str) -> None:
    letta.will_answer(200, [{"id": "message-1", "message_type": "user_message", "content": "Hi"}])
    assert ada.get(f"conversations/{conversation}/messages?limit=5")[0]["content"] == "Hi"
    assert (letta.forwarded[-1].path, letta.forwarded[-1].query) == (f"/v1/agents/{ada.agent_id}/messages", "limit=5")


def test_the_default_conversation_needs_its_agent(ada: LettaClient) -> None:
    assert ada.try_to_say("Hi", path="conversations/default/messages").status_code == 404
    reply = ada.say("Hi", path="conversations/default/messages", agent_id=ada.agent_id)
    assert reply.text == "You said: Hi"


def test_a_conversation_is_cancelled_as_its_agents_runs_are(
    ada: LettaClient, letta: FakeGateway, conversation: str
) -> None:
    letta.will_answer(200, {"run-1": "cancelled"})
    assert ada.send(f"conversations/{conversation}/cancel", {}).json == {"run-1": "cancelled"}
    assert letta.forwarded[-1].path == f"/v1/agents/{ada.agent_id}/messages/cancel"


def test_a_conversation_of_an_unknown_agent_is_not_made(ada: LettaClient) -> None:
    for agent_id in ("agent-1", "", "agent-12345678-1234-1234-1234-123456789012"):
        assert ada.send(f"conversations/?agent_id={agent_id}", {}).status_code == 404


# --- messages that Letta answers --------------------------------------------------------------------------


def test_a_message_without_client_tools_is_answered_by_letta(ada: LettaClient, letta: FakeGateway) -> None:
    ada.say("Hi")
    attached = letta.agents_named("Ada")[0].id
    assert [tool.name for tool in letta.agent(attached).tools] == ["read"]
    letta.will_answer(200, {"messages": [], "odd": 1.50})
    body = b'{"messages":[{"role":"user","content":"Plain"}],  "max_steps":3}'
    answered = ada.client.post(f"/letta/v1/agents/{ada.agent_id}/messages", data=body, content_type="application/json")
    assert answered.json == {"messages": [], "odd": 1.5}
    assert letta.forwarded[-1].body == body
    assert letta.agent(attached).tools == ()


def test_a_stream_of_letta_passes_as_it_is(ada: LettaClient, letta: FakeGateway) -> None:
    letta.will_answer(200, b"data: {}\n\n", [("Content-Type", "text/event-stream")], b"data: [DONE]\n\n")
    answered = ada.send(f"agents/{ada.agent_id}/messages/stream", {"messages": []})
    assert answered.data == b"data: {}\n\ndata: [DONE]\n\n"


def test_a_message_to_a_conversation_goes_to_its_agent(ada: LettaClient, letta: FakeGateway, conversation: str) -> None:
    for streaming, path in ((None, "/stream"), (False, "")):
        letta.will_answer(200, {})
        fields = {} if streaming is None else {"streaming": streaming}
        body = {"messages": [{"role": "user", "content": "Hi"}], "background": True, "agent_id": "x", **fields}
        ada.send(f"conversations/{conversation}/messages", body)
        sent = letta.forwarded[-1]
        assert sent.path == f"/v1/agents/{ada.agent_id}/messages{path}"
        assert json.loads(sent.body or b"") == {"messages": [{"role": "user", "content": "Hi"}]}


def test_parts_of_a_text_are_joined_where_the_server_loses_them(settings: Settings) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 8, 17)))
    agent = letta.has_agent("Ada")
    ada = LettaClient(create_app(settings, letta).test_client(), agent.id)
    letta.will_answer(200, {})
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    ada.send(f"agents/{agent.id}/messages", {"messages": [{"role": "user", "content": parts}]})
    assert json.loads(letta.forwarded[-1].body or b"")["messages"][0]["content"] == "one\ntwo"


def test_client_tools_in_the_background_are_refused(ada: LettaClient, letta: FakeGateway) -> None:
    refused = ada.try_to_say("Hi", path=f"agents/{ada.agent_id}/messages/async")
    assert (refused.status_code, (refused.json or {})["param"]) == (400, "client_tools")
    letta.will_answer(200, {"id": "run-1"})
    assert ada.send(f"agents/{ada.agent_id}/messages/async", {"messages": []}).json == {"id": "run-1"}


def test_a_held_call_of_another_client_is_closed_before_a_plain_message(
    ada: LettaClient, chat: Chat, letta: FakeGateway, settings: Settings, environment: dict[str, str]
) -> None:
    quick = create_app(read_settings({**environment, "BRIDGE_TOOL_WAIT": "0.1"}), letta).test_client()
    will_call(letta)
    tools = [{"type": "function", "function": READ}]
    assert Chat(quick).ask("Read", tools=tools).message["tool_calls"]
    letta.will_answer(200, {})
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    assert quick.post(f"/letta/v1/agents/{ada.agent_id}/messages", json=body).status_code == 200
    assert "give_results" in letta.calls


def test_a_plain_message_finds_the_owners_setting_for_parallel_calls(ada: LettaClient, letta: FakeGateway) -> None:
    before = letta.agent(ada.agent_id)
    ada.say("Hi")
    assert letta.agent(ada.agent_id).parallel_calls
    letta.will_answer(200, {})
    ada.send(f"agents/{ada.agent_id}/messages", {"messages": []})
    after = letta.agent(ada.agent_id)
    assert (after.parallel_calls, after.metadata) == (before.parallel_calls, before.metadata)


def test_a_broken_answer_marks_the_turn_as_unfinished(ada: LettaClient, letta: FakeGateway) -> None:
    broken = errors.LettaUnreachable("It broke.", code="stream_cut")
    letta.will_answer(200, b"data: {}\n\n", [("Content-Type", "text/event-stream")], broken)
    with pytest.raises(errors.LettaUnreachable):
        ada.send(f"agents/{ada.agent_id}/messages/stream", {"messages": []})
    letta.calls.clear()
    ada.say("Hi")
    assert "runs_under_way" in letta.calls
    letta.calls.clear()
    ada.say("Hi again")
    assert "runs_under_way" not in letta.calls


def waits_for_its_own_tool(ada: LettaClient, letta: FakeGateway) -> str:
    """Makes the agent wait for somebody to approve a call of its own tool. Returns the id of the message."""
    own = letta.has_tool("own")
    letta.change_agent(ada.agent_id, AgentChange(tool_ids=[own.id]))
    will_call(letta, name="own")
    assert (ada.try_to_say("Go").json or {})["code"] == "agent_waits_for_approval"
    return letta.agent(ada.agent_id).message_ids[-1]


@pytest.mark.parametrize("with_tools", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_letta_gets_a_decision_on_a_call_of_the_agents_own_tool(
    ada: LettaClient, letta: FakeGateway, listed: bool, with_tools: bool
) -> None:
    request_id = waits_for_its_own_tool(ada, letta)
    given = (
        {"approvals": [{"type": "approval", "tool_call_id": "call_0", "approve": True}]}
        if listed
        else {"approve": True, "approval_request_id": request_id}
    )
    letta.calls.clear()
    letta.will_answer(200, {"messages": []})
    sent = {"messages": [{"type": "approval", **given}], **({"client_tools": [READ]} if with_tools else {})}
    assert ada.send(f"agents/{ada.agent_id}/messages", sent).json == {"messages": []}
    assert json.loads(letta.forwarded[-1].body or b"") == sent
    assert "give_results" not in letta.calls


@pytest.mark.parametrize("verb", ["POST", "PATCH"])
def test_nothing_reaches_the_agent_for_a_client_that_left_while_it_waited(
    ada: LettaClient, letta: FakeGateway, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that it waits for is of somebody else."""
    monkeypatch.setattr(hangup, "TICK", 0.01)
    ours, theirs = socket.socketpair()

    def ask() -> None:
        path = f"/letta/v1/agents/{ada.agent_id}" + ("/messages" if verb == "POST" else "")
        with ours:
            ada.client.application.test_client().open(
                path, method=verb, json={"messages": []}, environ_overrides={"gunicorn.socket": ours}
            )

    asking = threading.Thread(target=ask)
    letta.will(
        asking.start, lambda: time.sleep(0.2), theirs.close, lambda: asking.join(5), Text("Hi"), Stopped("end_turn")
    )
    ada.say("Hi")
    asking.join()
    assert (letta.forwarded, letta.cancelled) == ([], [])


@pytest.mark.fault("clients that hang up")
@pytest.mark.parametrize("cancels", [True, False])
def test_the_run_of_a_client_that_leaves_before_letta_answers_is_ended(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, cancels: bool
) -> None:
    """Before Letta 0.14, a run can't be ended: then the agent is not free before Letta has answered."""
    monkeypatch.setattr(hangup, "TICK", 0.01)
    letta = FakeGateway(FEATURES if cancels else replace(FEATURES, version=(0, 11, 7)))
    ada = LettaClient(create_app(settings, letta).test_client(), letta.has_agent("Ada").id)
    ours, theirs = socket.socketpair()

    def think(call: ForeignCall, *, patient: bool = False) -> ForeignAnswer:
        theirs.close()
        with suppress(AssertionError):
            until(lambda: letta.cancelled, SOON if cancels else 0.2)
        return answer_at_once(call, patient=patient)

    answer_at_once = letta.forward
    monkeypatch.setattr(letta, "forward", think)
    with ours:
        path = f"/letta/v1/agents/{ada.agent_id}/messages"
        ada.client.post(path, json={"messages": []}, environ_overrides={"gunicorn.socket": ours})
    assert letta.cancelled == ([(ada.agent_id, "")] if cancels else [])
    assert ada.say("Hi").text == "You said: Hi"


@pytest.mark.fault("clients that hang up")
@pytest.mark.parametrize("conversation", ["", "conv-1"])
def test_the_run_of_a_client_that_leaves_a_silent_stream_is_ended(
    ada: LettaClient, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch, conversation: str
) -> None:
    monkeypatch.setattr(hangup, "TICK", 0.01)
    ours, theirs = socket.socketpair()
    if conversation:
        letta.will_answer(200, {"id": conversation, "agent_id": ada.agent_id})
    letta.will_answer(200, b"data: {}\n\n", [("Content-Type", "text/event-stream")])
    place = f"conversations/{conversation}" if conversation else f"agents/{ada.agent_id}"
    with ours:
        answered = ada.client.post(
            f"/letta/v1/{place}/messages", json={"messages": []}, environ_overrides={"gunicorn.socket": ours}
        )
        assert b"".join(islice(answered.iter_encoded(), 2)) == b"data: {}\n\n"
        theirs.close()
        until(lambda: letta.cancelled or letta.forwarded[-1].path.endswith("/cancel"))
        answered.close()
    assert letta.cancelled == ([] if conversation else [(ada.agent_id, "")])
    if conversation:
        assert letta.forwarded[-1].path == "/v1/conversations/conv-1/cancel"


def test_parts_of_a_text_are_joined_in_the_background_too(settings: Settings) -> None:
    letta = FakeGateway(replace(FEATURES, version=(0, 8, 17)))
    agent = letta.has_agent("Ada")
    ada = LettaClient(create_app(settings, letta).test_client(), agent.id)
    letta.will_answer(200, {})
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    ada.send(f"agents/{agent.id}/messages/async", {"messages": [{"role": "user", "content": parts}]})
    assert json.loads(letta.forwarded[-1].body or b"")["messages"][0]["content"] == "one\ntwo"


def test_an_agents_id_is_the_name_of_its_default_conversation(ada: LettaClient, letta: FakeGateway) -> None:
    path = f"conversations/{ada.agent_id}/messages"
    assert ada.say("Hi", path=path).text == "You said: Hi"
    letta.will_answer(200, {})
    ada.send(path, {"messages": [], "streaming": False})
    assert [call.path for call in letta.forwarded] == [f"/v1/agents/{ada.agent_id}/messages"]


# --- everything else --------------------------------------------------------------------------------------


def test_other_requests_pass_unread(ada: LettaClient, letta: FakeGateway) -> None:
    letta.will_answer(418, b"not JSON {", [("Content-Type", "application/json"), ("X-Odd", "1")])
    passed = ada.send("blocks/?limit=1&label=a%20b", verb="GET")
    assert (passed.status_code, passed.data, passed.headers["X-Odd"]) == (418, b"not JSON {", "1")
    assert (letta.forwarded[-1].path, letta.forwarded[-1].query) == ("/v1/blocks/", "limit=1&label=a%20b")


def test_stubs_do_not_appear_and_can_not_be_changed(ada: LettaClient, letta: FakeGateway) -> None:
    own = letta.has_tool("own")
    ada.say("Hi")
    (stub,) = letta.tools_named(["read"])
    rows = [{"id": tool.id, "name": tool.name, "tags": list(tool.tags)} for tool in (own, stub)]
    agent = {"id": ada.agent_id, "tools": rows, "tool_rules": [{"type": "requires_approval", "tool_name": "read"}]}
    for path, shown, expected in (
        (f"agents/{ada.agent_id}", agent, {**agent, "tools": rows[:1], "tool_rules": []}),
        ("agents/", [agent], [{**agent, "tools": rows[:1], "tool_rules": []}]),
        (f"agents/{ada.agent_id}/tools", rows, rows[:1]),
        ("tools/", rows, rows[:1]),
    ):
        letta.will_answer(200, shown)
        assert ada.get(path) == expected
    forwarded = len(letta.forwarded)
    for verb, path in (
        ("DELETE", f"tools/{stub.id}"),
        ("PATCH", f"tools/{stub.id}"),
        ("GET", f"tools/{stub.id}"),
        ("PATCH", f"agents/{ada.agent_id}/tools/detach/{stub.id}"),
    ):
        assert ada.send(path, {}, verb).status_code == 404
    assert len(letta.forwarded) == forwarded


def test_a_stub_is_not_overwritten_by_its_name(ada: LettaClient, letta: FakeGateway) -> None:
    ada.say("Hi")
    before = letta.tools_named(["read"])
    for verb, path in (("PUT", "tools/"), ("POST", "tools/"), ("PATCH", "tools/tool-1")):
        refused = ada.send(path, {"source_code": "def read(): ...", "json_schema": {"name": "read"}}, verb)
        assert (refused.status_code, (refused.json or {})["code"]) == (409, "tool_name_taken")
    assert (letta.tools_named(["read"]), letta.forwarded) == (before, [])


def test_letta_code_is_shown_what_it_would_set(ada: LettaClient, letta: FakeGateway) -> None:
    rules = [{"type": "exit_loop", "tool_name": "send_message"}]
    agent = {
        "id": ada.agent_id,
        "tool_rules": rules,
        "llm_config": {"model_endpoint_type": "openai", "model": "gpt-4o-mini"},
    }
    for source, expected in (("letta-code", ([], "openai/gpt-4o-mini", True)), ("", (rules, None, None))):
        letta.will_answer(200, agent)
        shown = ada.get(f"agents/{ada.agent_id}", X_Letta_Source=source)
        settings = shown.get("model_settings", {})
        assert (shown["tool_rules"], shown.get("model"), settings.get("parallel_tool_calls")) == expected


def test_a_change_of_an_agent_waits_for_its_turn(ada: LettaClient, letta: FakeGateway) -> None:
    during: list[int] = []

    def change() -> None:
        letta.will_answer(200, {"id": ada.agent_id})
        during.append(ada.send(f"agents/{ada.agent_id}", {"tags": []}, "PATCH").status_code)

    changing = threading.Thread(target=change)
    letta.will(changing.start, lambda: changing.join(0.3), lambda: during.append(0), Text("Hi"), Stopped("end_turn"))
    ada.say("Hi")
    changing.join()
    assert during == [0, 200]


def test_a_message_to_a_conversation_of_letta_s_own_waits_for_its_agent(ada: LettaClient, letta: FakeGateway) -> None:
    letta.will_answer(200, {"id": "conv-1", "agent_id": ada.agent_id})
    letta.will_answer(200, {"messages": []})
    body = {"messages": [{"role": "user", "content": "Hi"}], "background": True, "streaming": False}
    assert ada.send("conversations/conv-1/messages", body).json == {"messages": []}
    assert [call.path for call in letta.forwarded] == ["/v1/conversations/conv-1", "/v1/conversations/conv-1/messages"]
    assert "background" not in json.loads(letta.forwarded[-1].body or b"")
    letta.will_answer(404, {"detail": "No."})
    letta.will_answer(404, {"detail": "No."})
    assert ada.send("conversations/conv-2/messages", body).status_code == 404


def test_an_open_call_of_another_api_is_not_shown(ada: LettaClient, chat: Chat, letta: FakeGateway) -> None:
    will_call(letta)
    (call,) = chat.ask("Read", tools=[{"type": "function", "function": READ}]).message["tool_calls"]
    request_id = CALL_IDS.message_and_index(call["id"])[0]  # type: ignore[index]
    ids = list(letta.agent(ada.agent_id).message_ids)
    assert ids[-1] == request_id
    letta.will_answer(200, {"id": ada.agent_id, "message_ids": ids, "pending_approval": {"id": request_id}})
    shown = ada.get(f"agents/{ada.agent_id}")
    assert (shown["message_ids"], shown["pending_approval"]) == (ids[:-1], None)
    row = {
        "id": request_id,
        "message_type": "approval_request_message",
        "tool_call": {"name": "read", "arguments": "{}", "tool_call_id": "call_0"},
    }
    letta.will_answer(200, [row])
    assert ada.get(f"agents/{ada.agent_id}/messages")[0]["tool_call"]["tool_call_id"] == "call_0"


def test_a_list_of_agents_at_another_place_has_no_stubs(ada: LettaClient, letta: FakeGateway) -> None:
    ada.say("Hi")
    (stub,) = letta.tools_named(["read"])
    rows = [{"id": stub.id, "name": stub.name, "tags": list(stub.tags)}]
    letta.will_answer(200, [{"id": ada.agent_id, "tools": rows}])
    assert ada.get("blocks/block-1/agents") == [{"id": ada.agent_id, "tools": []}]


def test_a_change_may_take_as_long_as_a_turn(ada: LettaClient, letta: FakeGateway) -> None:
    ada.send(f"agents/{ada.agent_id}/summarize", {})
    ada.send(f"agents/{ada.agent_id}", verb="GET")
    assert letta.patience == [True, False]


@pytest.mark.parametrize(("status", "body"), [(500, {"detail": "No."}), (200, b"no JSON"), (200, {"detail": "No."})])
def test_a_message_that_letta_does_not_give_is_lettas_failure(
    ada: LettaClient, letta: FakeGateway, conversation: str, status: int, body: Any
) -> None:
    shown = ada.get(f"conversations/{conversation}")["in_context_message_ids"][-1]
    letta.will_answer(status, body)
    assert ada.send(f"messages/{shown}", verb="GET").status_code == 502


def test_the_servers_tools_are_listed_once_for_many_readers(ada: LettaClient, letta: FakeGateway) -> None:
    ada.say("Hi")  # features are known
    for _ in range(4):
        letta.will_answer(200, {"id": ada.agent_id})
    listing = letta.tools
    letta.tools = lambda: (time.sleep(0.2), listing())[1]  # type: ignore[method-assign]
    letta.calls.clear()
    readers = [
        threading.Thread(target=LettaClient(ada.client.application.test_client(), ada.agent_id).get, args=["agents/"])
        for _ in range(4)
    ]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert letta.calls.count("tools") == 1


def test_an_open_call_of_another_key_is_not_shown(environment: dict[str, str], letta: FakeGateway) -> None:
    hashes = {name: hashlib.sha256(f"{KEY}{name}".encode()).hexdigest() for name in ("one", "two")}
    keys = ",".join(f"{name}:{digest}" for name, digest in hashes.items())
    app = create_app(read_settings({**environment, "BRIDGE_ALLOW_ANONYMOUS": "", "BRIDGE_API_KEYS": keys}), letta)
    agent_id = letta.agents_named("Ada")[0].id
    one, two = (LettaClient(app.test_client(), agent_id, {"Authorization": f"Bearer {KEY}{name}"}) for name in hashes)
    open_call(one, letta)
    ids = list(letta.agent(agent_id).message_ids)
    conversation = one.send(f"conversations/?agent_id={agent_id}", {}).json or {}
    for reader, shown in ((one, ids), (two, ids[:-1])):
        letta.will_answer(200, {"id": agent_id, "message_ids": ids})
        assert reader.get(f"agents/{agent_id}")["message_ids"] == shown
        assert reader.get(f"conversations/{conversation['id']}")["in_context_message_ids"] == ids[:-1]


# --- rights -----------------------------------------------------------------------------------------------


def with_key(settings_of: dict[str, str], letta: FakeGateway, option: str, agents: str = "") -> LettaClient:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    variables = {**settings_of, "BRIDGE_ALLOW_ANONYMOUS": "", "BRIDGE_API_KEYS": f"me:{digest}:{agents}:{option}"}
    app = create_app(read_settings(variables), letta)
    return LettaClient(app.test_client(), letta.agents_named("Ada")[0].id, {"Authorization": f"Bearer {KEY}"})


def test_it_is_off_by_default(environment: dict[str, str], letta: FakeGateway) -> None:
    off = {name: value for name, value in environment.items() if name != "BRIDGE_LETTA_API"}
    client = create_app(read_settings(off), letta).test_client()
    assert client.get("/letta/v1/agents/").status_code == 404
    with_right = with_key({**off}, letta, "letta=agents")
    assert with_right.say("Hi").text == "You said: Hi"
    without = with_key({**off, "BRIDGE_LETTA_API": "all"}, letta, "letta=off")
    assert without.try_to_say("Hi").status_code == 404


def test_a_key_is_needed(environment: dict[str, str], letta: FakeGateway) -> None:
    ada = with_key(environment, letta, "letta=all")
    for headers in ({}, {"Authorization": "Bearer wrong"}):
        assert LettaClient(ada.client, ada.agent_id, headers).send("agents/", verb="GET").status_code == 401
    assert letta.forwarded == []


def test_a_key_for_agents_reaches_only_agents_that_it_may_see(environment: dict[str, str], letta: FakeGateway) -> None:
    bob = letta.has_agent("Bob")
    ada = with_key(environment, letta, "letta=all", agents="Ada")
    assert ada.say("Hi").text == "You said: Hi"
    letta.will_answer(200, [{"id": bob.id, "name": "Bob"}, {"id": ada.agent_id, "name": "Ada"}])
    assert [row["name"] for row in ada.get("agents/")] == ["Ada"]
    letta.will_answer(200, [{"id": "tool-1", "name": "own"}])
    assert [row["name"] for row in ada.get(f"agents/{ada.agent_id}/tools")] == ["own"]
    forwarded = len(letta.forwarded)
    for verb, path, status in (
        ("GET", f"agents/{bob.id}", 404),
        ("GET", f"agents/{bob.id}/messages", 404),
        ("POST", f"agents/{bob.id}/messages", 404),
        ("POST", f"agents/{bob.id}/messages/async", 404),
        ("POST", f"conversations/?agent_id={bob.id}", 404),
        ("GET", "conversations/conv-1", 403),
        ("GET", "tools/", 403),
        ("GET", "blocks/", 403),
        ("GET", "messages/message-1", 403),
        ("PATCH", f"agents/{ada.agent_id}", 403),
        ("DELETE", f"agents/{ada.agent_id}", 403),
    ):
        sent = {"name": "x", "messages": []} if verb != "GET" else None
        assert ada.send(path, sent, verb).status_code == status, (verb, path)
    assert ada.send("tools/add-base-tools", {}).json == []
    assert len(letta.forwarded) == forwarded


def test_a_key_for_one_of_two_agents_of_a_name_sees_only_that_one(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    mine = letta.agents_named("Ada")[0]
    twin = letta.has_agent("Ada")
    ada = with_key(environment, letta, "letta=all", agents=name_with_digits(mine))
    letta.will_answer(200, [{"id": one.id, "name": "Ada"} for one in (twin, mine)])
    assert [row["id"] for row in ada.get("agents/")] == [mine.id]
    refused = ada.send(f"agents/{twin.id}", verb="GET")
    assert refused.status_code == 404
    assert f"Your agents: {name_with_digits(mine)!r}." in refused.text


def test_a_key_for_agents_sees_no_secrets_and_makes_letta_fetch_nothing(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    ada = with_key(environment, letta, "letta=agents")
    agent = {"id": ada.agent_id, "secrets": [{"value": "s"}], "tool_exec_environment_variables": [{"value": "s"}]}
    for path, row in ((f"agents/{ada.agent_id}", agent), ("agents/", [agent])):
        letta.will_answer(200, row)
        assert '"s"' not in ada.send(path, verb="GET").text
    address = {"type": "image", "source": {"type": "url", "url": "http://169.254.169.254/"}}
    for path in ("messages", "messages/stream", "messages/async"):
        body = {"messages": [{"role": "user", "content": [address]}]}
        assert ada.send(f"agents/{ada.agent_id}/{path}", body).status_code == 400
    assert len(letta.forwarded) == 2


def test_a_conversation_or_a_shown_message_leads_to_no_agent_of_others(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    bob = letta.has_agent("Bob")
    owner = LettaClient(create_app(read_settings(environment), letta).test_client(), bob.id)
    conversation = (owner.send(f"conversations/?agent_id={bob.id}", {}).json or {})["id"]
    open_call(owner, letta, path=f"conversations/{conversation}/messages")
    shown = owner.get(f"conversations/{conversation}")["in_context_message_ids"][-1]
    limited = with_key(environment, letta, "letta=agents", agents="Ada")
    forwarded, prompts = len(letta.forwarded), len(letta.prompts)
    for verb, path in (
        ("GET", f"conversations/{conversation}"),
        ("GET", f"conversations/{conversation}/messages"),
        ("POST", f"conversations/{conversation}/messages"),
        ("POST", f"conversations/{conversation}/cancel"),
        ("GET", f"messages/{shown}"),
    ):
        sent = {"messages": [{"role": "user", "content": "Hi"}]} if verb == "POST" else None
        assert limited.send(path, sent, verb).status_code == 404, (verb, path)
    assert limited.try_to_say("Hi", path="conversations/default/messages", agent_id=bob.id).status_code == 404
    assert (len(letta.forwarded), len(letta.prompts)) == (forwarded, prompts)


def test_errors_are_in_letta_s_form(ada: LettaClient) -> None:
    for verb, path in (("GET", "agents/agent-1/x/../y"), ("POST", "agents/agent-1/messages")):
        answered = ada.send(path, {"messages": []} if verb == "POST" else None, verb)
        assert answered.status_code in (400, 404)
        assert isinstance((answered.json or {})["detail"], str)


def test_a_stream_is_complete_for_letta_s_programs(ada: LettaClient, letta: FakeGateway) -> None:
    will_call(letta)
    sent = {
        "messages": [{"role": "user", "content": "Read"}],
        "client_tools": [READ],
        "streaming": True,
        "stream_tokens": True,
    }
    reply = read_stream(ada.send(f"agents/{ada.agent_id}/messages", sent).data)
    assert [piece["tool_call"]["arguments"] for piece in reply.pieces] == [None, '{"path": "a.txt"}']
    assert reply.stop_reason == "requires_approval"
