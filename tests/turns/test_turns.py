"""Requests that come again, and too many turns at once, through the routes and an in-memory Letta."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from flask import Flask
from flask.testing import FlaskClient

from bridge import errors, sse
from bridge.interception.method import GO_ON
from bridge.turn import AgentCall, AgentEvent, RunStarted, Stopped, Text
from bridge.turns.attempts import Attempt, Attempts
from bridge.web import listener
from tests.actors import Chat, ChatReply
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.waiting import SOON, until


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "TICK", 0.05)


class Slow:
    """A run that says something, waits until the test lets it go on, and ends."""

    def __init__(self, letta: FakeGateway) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        letta.will(Text("Hel"), self.begun.set, lambda: self.go_on.wait(SOON), Text("lo"), Stopped("end_turn"))


def at_once(app: Flask, pool: ThreadPoolExecutor, **asked: Any) -> Future[ChatReply]:
    return pool.submit(lambda: Chat(app.test_client()).ask(**asked))


@pytest.mark.fault("the same request again")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_that_comes_again_while_it_is_answered_gets_the_same_answer(
    app: Flask, letta: FakeGateway, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, joined, join = Slow(letta), threading.Event(), Attempts.join

    def join_and_say_so(attempts: Attempts, token: str) -> Attempt | None:
        attempt = join(attempts, token)
        joined.set()
        return attempt

    monkeypatch.setattr(Attempts, "join", join_and_say_so)
    with ThreadPoolExecutor() as pool:
        first = at_once(app, pool)
        assert slow.begun.wait(SOON)
        again = at_once(app, pool, stream=streamed)
        assert joined.wait(SOON)
        slow.go_on.set()
        assert first.result(SOON).text == again.result(SOON).text == "Hello"
    assert len(letta.prompts) == 1


def test_another_request_is_another_turn(app: Flask, letta: FakeGateway) -> None:
    chat = Chat(app.test_client())
    for fields in ({}, {"tools": []}, {"temperature": 1}):
        chat.ask("Hello", **fields)
    chat.ask("Hello!")
    assert len(letta.prompts) == 4


def test_the_same_request_after_its_answer_is_a_new_turn(chat: Chat, letta: FakeGateway) -> None:
    for streamed in (False, True, False):
        chat.ask("Hello", stream=streamed)
    assert len(letta.prompts) == 3


@pytest.mark.fault("the same request again")
def test_an_unstreamed_answer_that_takes_too_long_is_given_to_the_same_request_later(
    environment: dict[str, str], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    environment["BRIDGE_REPLY_WAIT"] = "1"
    chat = Chat(request.getfixturevalue("client"))
    slow = Slow(letta)
    late = chat.ask("Hello")
    assert (late.status, late.error and late.error["code"]) == (504, "still_running")
    assert 1 <= int(late.headers["Retry-After"]) <= 60
    slow.go_on.set()

    def answered() -> ChatReply | None:
        reply = chat.ask("Hello")
        return None if reply.status == 504 else reply  # on a busy machine it may take another second

    had = until(answered)
    assert had is not None
    assert had.text == "Hello"
    assert len(letta.prompts) == 1
    assert letta.cancelled == []


@pytest.mark.fault("the same request again")
def test_a_client_that_left_gets_its_answer_when_it_comes_back(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    body = {"model": "Ada", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    response = client.post("/v1/chat/completions", json=body, buffered=False)
    assert next(response.response)  # type: ignore[call-overload]
    response.close()
    assert chat.ask("Hello", stream=True, usage=False).text == "You said: Hello"
    assert len(letta.prompts) == 1


@pytest.mark.fault("clients that hang up")
def test_a_client_that_left_before_its_turn_began_is_answered_when_it_comes_back(
    environment: dict[str, str], parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    environment["BRIDGE_TOOL_WAIT"] = "60"
    parameters["header_wait"] = 0.0
    client: FlaskClient = request.getfixturevalue("client")
    chat = Chat(client)
    letta.will(AgentCall(new_id("message"), "call_1", "clock", "{}", held=True), Stopped("requires_approval"))
    clock = {"type": "function", "function": {"name": "clock"}}
    called = chat.ask("What time is it?", tools=[clock])
    assert called.finish_reason == "tool_calls"
    body = {"model": "Ada", "messages": [{"role": "user", "content": "Hello"}], "stream": True}
    response = client.post("/v1/chat/completions", json=body, buffered=False)
    comment = next(response.response)  # type: ignore[call-overload]
    assert comment == b": waiting for another client's tool result\n\n"
    response.close()
    result = {"role": "tool", "tool_call_id": called.message["tool_calls"][0]["id"], "content": "noon"}
    messages = [{"role": "user", "content": "What time is it?"}, called.message, result]
    letta.will_say("It is noon.")
    assert chat.ask(messages=messages, tools=[clock]).text == "It is noon."
    assert chat.ask("Hello", stream=True, usage=False).text == "You said: Hello"


@pytest.mark.fault("the same request again")
def test_results_that_come_again_make_a_silent_agent_go_on(chat: Chat, letta: FakeGateway) -> None:
    tools = [{"type": "function", "function": {"name": "clock"}}]
    letta.will(AgentCall(new_id("message"), "call_1", "clock", "{}", held=True), Stopped("requires_approval"))
    called = chat.ask("What time is it?", tools=tools).message
    result = {"role": "tool", "tool_call_id": called["tool_calls"][0]["id"], "content": "noon"}
    messages = [{"role": "user", "content": "What time is it?"}, called, result]
    letta.will(Stopped("end_turn"))
    assert chat.ask(messages=messages, tools=tools).text == ""
    letta.will_say("It is noon.")
    texts = [chat.ask(messages=messages, tools=tools).text for _ in range(2)]
    assert texts == ["It is noon."] * 2
    assert len(letta.prompts) == 3
    assert letta.prompts[-1].texts == [GO_ON]


@pytest.mark.fault("clients that hang up")
@pytest.mark.parametrize("named", [True, False])
def test_a_client_that_leaves_a_request_aside_does_not_end_the_conversation(
    parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest, named: bool
) -> None:
    """Only the run of the helper agent is its own. A run without a name could be any run of the agent."""
    parameters["header_wait"] = 0.0
    app: Flask = request.getfixturevalue("app")
    slow, asked, go_on = Slow(letta), threading.Event(), threading.Event()
    begun: list[AgentEvent] = [RunStarted("run-aside"), Text("A")] if named else []
    letta.will(*begun, asked.set, lambda: go_on.wait(SOON), Stopped("end_turn"))
    with ThreadPoolExecutor() as pool:
        conversation = at_once(app, pool)
        assert slow.begun.wait(SOON)
        body = {"model": "Ada", "messages": [{"role": "user", "content": "A title"}], "stream": True}
        aside = {"X-Bridge-Aside": "1"}
        left = app.test_client().post("/v1/chat/completions", json=body, headers=aside, buffered=False)
        assert asked.wait(SOON)
        assert next(left.response)  # type: ignore[call-overload]
        left.close()
        go_on.set()
        slow.go_on.set()
        assert conversation.result(SOON).text == "Hello"
    assert [run_id for _, run_id in letta.cancelled] == (["run-aside"] if named else [])


class TestIdempotencyKey:
    KEY: ClassVar = {"Idempotency-Key": "order-1"}

    def test_the_same_key_gets_the_same_answer(self, chat: Chat, letta: FakeGateway) -> None:
        texts = {chat.ask("Hello", headers=self.KEY, stream=streamed).text for streamed in (False, True, False)}
        assert texts == {"You said: Hello"}
        assert len(letta.prompts) == 1

    def test_another_key_is_another_turn(self, chat: Chat, letta: FakeGateway) -> None:
        chat.ask("Hello", headers=self.KEY)
        chat.ask("Hello", headers={"Idempotency-Key": "order-2"})
        assert len(letta.prompts) == 2

    def test_a_key_with_another_body_is_refused(self, chat: Chat, letta: FakeGateway) -> None:
        chat.ask("Hello", headers=self.KEY)
        refused = chat.ask("Goodbye", headers=self.KEY)
        assert (refused.status, refused.error and refused.error["code"]) == (422, "idempotency_key_reused")
        assert len(letta.prompts) == 1

    def test_a_key_that_is_too_long_is_refused(self, chat: Chat) -> None:
        assert chat.ask("Hello", headers={"Idempotency-Key": "x" * 256}).status == 400
        assert chat.ask("Hello", headers={"Idempotency-Key": "x" * 255}).status == 200

    def test_after_a_failure_the_turn_is_attempted_again(self, chat: Chat, letta: FakeGateway) -> None:
        letta.will(errors.ModelFailed("It failed."))
        assert chat.ask("Hello", headers=self.KEY).status == 502
        letta.will_say("Hi")
        assert chat.ask("Hello", headers=self.KEY).text == "Hi"


class TestTooMany:
    @pytest.fixture
    def environment(self, environment: dict[str, str]) -> dict[str, str]:
        return {**environment, "BRIDGE_MAX_TURNS": "1"}

    def test_one_turn_too_many_is_refused_at_once_and_other_requests_are_served(
        self, app: Flask, letta: FakeGateway
    ) -> None:
        slow = Slow(letta)
        with ThreadPoolExecutor() as pool:
            first = at_once(app, pool, text="Slow")
            assert slow.begun.wait(SOON)
            chat = Chat(app.test_client())
            refused = chat.ask("Hello")
            assert (refused.status, refused.error and refused.error["code"]) == (503, "too_many_turns")
            assert 1 <= int(refused.headers["Retry-After"]) <= 60
            assert chat.models() == ["Ada"]
            slow.go_on.set()
            assert first.result(SOON).text == "Hello"
        assert chat.ask("Hello").status == 200

    @pytest.mark.fault("clients that hang up")
    def test_a_turn_that_waits_for_its_client_to_come_back_keeps_its_slot(
        self, parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest
    ) -> None:
        parameters["header_wait"] = 0.0
        client: FlaskClient = request.getfixturevalue("client")
        go_on = threading.Event()
        letta.will(lambda: go_on.wait(SOON), Text("Hello"), Stopped("end_turn"))
        body = {"model": "Ada", "messages": [{"role": "user", "content": "Slow"}], "stream": True}
        response = client.post("/v1/chat/completions", json=body, buffered=False)
        assert next(response.response) == sse.PING  # type: ignore[call-overload]
        response.close()
        assert Chat(client).ask("Another").status == 503
        go_on.set()
        assert until(lambda: (reply := Chat(client).ask("Slow")).status == 200 and reply.text) == "Hello"
        assert letta.cancelled == []
        assert len(letta.prompts) == 1

    @pytest.mark.fault("no thread left for a moment")
    def test_a_turn_whose_thread_cannot_start_gives_its_slot_back(
        self, chat: Chat, letta: FakeGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "bridge.request")
        start = threading.Thread.start

        def refused(thread: threading.Thread) -> None:
            if thread.name == "turn":
                raise RuntimeError("can't start new thread")
            start(thread)

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refused)
            assert chat.ask("Hello").status == 500
        assert [record.name for record in caplog.records if record.name == "bridge.request"] == ["bridge.request"]
        assert chat.ask("Hello").text == "You said: Hello"
        assert len(letta.prompts) == 1

    @pytest.mark.parametrize("streamed", [False, True])
    def test_every_slot_is_given_back(self, chat: Chat, letta: FakeGateway, streamed: bool) -> None:
        for number in range(4):
            letta.will(*([errors.ModelFailed("It failed.")] if number % 2 else [Text("Hi"), Stopped("end_turn")]))
            assert chat.ask(f"Hello {number}", stream=streamed).status == (502 if number % 2 else 200)
        assert chat.post(b"{").status == 400
        assert chat.ask("Hello", stream=streamed).status == 200


@pytest.mark.fault("Redis down, lost, slow, back, refusing")
def test_without_its_store_the_service_is_not_ready_and_begins_no_turn(
    environment: dict[str, str], letta: FakeGateway, request: pytest.FixtureRequest
) -> None:
    environment["REDIS_URL"] = "redis://127.0.0.1:1/0"
    client = request.getfixturevalue("client")
    refused = Chat(client).ask("Hello")
    assert (refused.status, refused.error and refused.error["code"]) == (503, "store_unavailable")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert client.get("/readyz").status_code == 503
    assert client.get("/healthz").status_code == 200
    assert letta.prompts == []
