"""Requests of Letta's own API that are passed on and are no messages."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from flask import Flask

from app import create_app
from bridge.config import read_settings
from bridge.interception.method import NO_RESULT
from bridge.letta.gateway import ForeignAnswer, ForeignCall
from bridge.sync.ownership import OWNER
from bridge.turn import AgentCall, Stopped, Text, Used
from tests.fake_agent import new_id
from tests.fakes import FEATURES, FakeGateway
from tests.letta_actor import LettaClient
from tests.waiting import SOON, until

KEY = "secret-key-1"


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_LETTA_API": "all"}


def client_of(app: Flask, letta: FakeGateway, key: str = "") -> LettaClient:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return LettaClient(app.test_client(), letta.agents_named("Ada")[0].id, headers)


def during_a_turn(app: Flask, letta: FakeGateway, do: Callable[[], None], key: str = "") -> None:
    """Calls `do` while the agent runs a turn."""
    letta.will(do, Text("Hi"), Stopped("end_turn"))
    assert client_of(app, letta, key).say("Hi").text == "Hi"


# --- how many at once -------------------------------------------------------------------------------------


def test_reads_do_not_need_a_place_of_a_turn(environment: dict[str, str], letta: FakeGateway) -> None:
    app = create_app(read_settings({**environment, "BRIDGE_MAX_TURNS": "1"}), letta)
    ada = client_of(app, letta)
    found: list[int] = []
    made = (ada.send(f"conversations/?agent_id={ada.agent_id}", {}).json or {})["id"]

    def read() -> None:
        for path in (f"agents/{ada.agent_id}", "agents/", f"conversations/{made}/messages"):
            letta.will_answer(200, [])
            found.append(ada.send(path, verb="GET").status_code)
        found.append(client_of(app, letta).try_to_say("Hi").status_code)

    during_a_turn(app, letta, read)
    assert found == [200, 200, 200, 503]


def test_reads_take_no_place_of_a_turn(environment: dict[str, str], letta: FakeGateway) -> None:
    settings = read_settings(environment, least_threads=8)
    app = create_app(settings, letta)
    assert (settings.passed_on_at_once, settings.threads, settings.turns_at_once) == (2, 10, 7)
    go_on, begun = threading.Event(), threading.Semaphore(0)
    answer_at_once = letta.forward

    def wait(call: ForeignCall, *, patient: bool = False) -> ForeignAnswer:
        begun.release()
        assert go_on.wait(SOON)
        return answer_at_once(call, patient=patient)

    letta.forward = wait  # type: ignore[method-assign]
    threads = [threading.Thread(target=client_of(app, letta).send, args=["blocks/", None, "GET"]) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert begun.acquire(timeout=SOON)
    refused = client_of(app, letta).send("blocks/", verb="GET")
    assert (refused.status_code, (refused.json or {})["code"]) == (503, "too_many_requests")
    assert refused.headers["Retry-After"]
    assert client_of(app, letta).say("Hi").text == "You said: Hi"
    go_on.set()
    for thread in threads:
        thread.join()
    assert until(lambda: client_of(app, letta).send("blocks/", verb="GET").status_code == 404)


def test_a_key_reads_during_its_turns_and_changes_count_as_turns(
    environment: dict[str, str], letta: FakeGateway
) -> None:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    keys = {"BRIDGE_ALLOW_ANONYMOUS": "", "BRIDGE_API_KEYS": f"me:{digest}::letta=all;turns=1"}
    app = create_app(read_settings({**environment, **keys}), letta)
    ada = client_of(app, letta, KEY)
    found: list[int] = []

    def ask() -> None:
        letta.will_answer(200, [])
        found.append(ada.send("agents/", verb="GET").status_code)
        found.append(ada.send("blocks/", {"label": "x"}).status_code)

    during_a_turn(app, letta, ask, KEY)
    assert found == [200, 429]


# --- what is shown ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["agents/{agent}", "conversations/{conversation}"])
def test_a_list_of_one_message_has_the_open_call(environment: dict[str, str], place: str) -> None:
    """Where calls get a provisional return, that is the newest message."""
    letta = FakeGateway(replace(FEATURES, version=(0, 11, 7), tool_returns=False))
    agent = letta.has_agent("Ada", "memgpt_v2_agent")
    environment = {**environment, "BRIDGE_TOOL_WAIT": "30"}
    ada = LettaClient(create_app(read_settings(environment), letta).test_client(), agent.id)
    made = (ada.send(f"conversations/?agent_id={agent.id}", {}).json or {})["id"]
    path = place.format(agent=agent.id, conversation=made)
    letta.will(
        AgentCall(new_id("message"), "call_0", "read", "{}", held=True), Used(1, 1), Stopped("requires_approval")
    )
    (request,) = ada.say("Read", path=f"{path}/messages", streaming=False).of("approval_request_message")
    called = letta.agent(agent.id).message_ids[-1]
    assert request["id"] == called
    call = {"name": "read", "arguments": "{}", "tool_call_id": "call_0"}
    returned = {"id": called, "message_type": "tool_return_message", "tool_return": NO_RESULT, "tool_call_id": "call_0"}
    letta.will_answer(200, [returned])
    letta.will_answer(
        200, [{"id": new_id("message"), "message_type": "tool_call_message", "tool_call": call}, returned]
    )
    (shown,) = ada.get(f"{path}/messages?limit=1&order=desc")
    assert (shown["id"], shown["message_type"]) == (called, "approval_request_message")
    assert shown["tool_calls"][0]["tool_call_id"] == request["tool_calls"][0]["tool_call_id"]
    letta.will_answer(200, [returned])
    letta.will_answer(200, [returned])
    assert ada.get(f"{path}/messages?limit=1") == [returned]


def test_stubs_are_not_counted(environment: dict[str, str], letta: FakeGateway) -> None:
    app = create_app(read_settings(environment), letta)
    ada = client_of(app, letta)
    rows = [{"id": "tool-1", "name": "read", "tags": [OWNER], "tool_type": "custom"}, {"id": "tool-2", "name": "own"}]
    for query, listed in (("", "limit=1000000"), ("search=re&limit=5", "search=re&limit=1000000")):
        letta.will_answer(200, 2)
        letta.will_answer(200, rows)
        assert ada.get(f"tools/count?{query}") == 1
        assert (letta.forwarded[-1].path, letta.forwarded[-1].query) == ("/v1/tools/", listed)


def test_a_context_has_no_stub_that_the_agent_got_a_moment_ago(environment: dict[str, str], letta: FakeGateway) -> None:
    ada = client_of(create_app(read_settings(environment), letta), letta)
    ada.say("Hi")
    (stub,) = letta.agent(ada.agent_id).tools
    listed, letta.tools = letta.tools, list  # type: ignore[method-assign,assignment]
    letta.will_answer(200, [])
    ada.get("agents/")  # the list of tools is kept for a moment
    letta.tools = listed  # type: ignore[method-assign]
    definitions = [{"type": "function", "function": {"name": name}} for name in ("own", stub.name)]
    letta.will_answer(200, {"functions_definitions": definitions})
    assert ada.get(f"agents/{ada.agent_id}/context") == {"functions_definitions": definitions[:1]}


# --- bodies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("verb", "path"), [("POST", "blocks/"), ("POST", "agents/{agent}/messages")])
def test_letta_gets_a_packed_body_unpacked(
    environment: dict[str, str], letta: FakeGateway, verb: str, path: str
) -> None:
    app = create_app(read_settings(environment), letta)
    ada = client_of(app, letta)
    body = b'{"messages": []}'
    letta.will_answer(200, {})
    sent = ada.client.open(
        f"/letta/v1/{path.format(agent=ada.agent_id)}",
        method=verb,
        data=gzip.compress(body),
        headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
    )
    assert sent.status_code == 200
    assert letta.forwarded[-1].body == body
    assert "Content-Encoding" not in letta.forwarded[-1].headers


@pytest.mark.parametrize(("encoding", "code"), [("br", None), ("gzip", "invalid_encoding")])
def test_a_body_that_can_not_be_unpacked_is_refused(
    environment: dict[str, str], letta: FakeGateway, encoding: str, code: str | None
) -> None:
    app = create_app(read_settings(environment), letta)
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    refused = app.test_client().post("/letta/v1/blocks/", data=b"{}", headers=headers)
    assert (refused.status_code, (refused.json or {})["code"]) == (400, code)
    assert letta.forwarded == []


def test_an_answer_that_letta_packs_is_passed_on_packed(environment: dict[str, str], letta: FakeGateway) -> None:
    app = create_app(read_settings(environment), letta)
    packed = gzip.compress(b"[]")
    letta.will_answer(200, packed, [("Content-Type", "application/json"), ("Content-Encoding", "gzip")])
    answered = client_of(app, letta).send("blocks/", verb="GET")
    assert (answered.data, answered.headers["Content-Encoding"]) == (packed, "gzip")
