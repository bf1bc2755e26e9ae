from __future__ import annotations

import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from bridge import errors
from bridge.turn import AgentCall, Stopped, Text, ToolCall, Used
from tests.actors import Chat
from tests.fakes import FakeGateway

TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def lines(log: pytest.LogCaptureFixture, message: str) -> list[dict[str, Any]]:
    return [record.fields for record in log.records if record.getMessage() == message]  # type: ignore[attr-defined]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_is_one_line(chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture, streamed: bool) -> None:
    letta.will(
        AgentCall("message-1", "call_1", "conversation_search", "{}"),
        Text("Hello"),
        Used(100, 10),
        Stopped("end_turn"),
    )
    chat.ask("the words of the user", stream=streamed, headers={"X-Request-Id": "req-1"})
    (told,) = lines(log, "turn")
    assert lines(log, "request") == []
    assert (told["outcome"], told["model"], told["method"], told["stream"]) == ("stop", "Ada", "approval", streamed)
    assert told["agent"] == letta.agents_named("Ada")[0].id
    assert (told["own_calls"], told["characters"], told["prompt_tokens"]) == (1, 5, 100)
    assert told["ms"] >= told["letta_ms"] + told["waited_ms"]
    assert "the words of the user" not in str(told)


def test_a_turn_that_ends_in_calls_says_so(chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture) -> None:
    letta.will(ToolCall("call_1", "read", "{}"), Stopped("tool_rule"))
    chat.ask(
        tools=TOOLS,
        messages=[
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "tool", "tool_call_id": "call_0", "content": "x"},
            {"role": "user", "content": "go on"},
        ],
    )
    (told,) = lines(log, "turn")
    assert (told["outcome"], told["tools"], told["results"], told["calls"]) == ("tool_calls", 1, 1, ["read"])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_turn_that_fails_is_told_by_the_name_of_its_error(
    chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture, streamed: bool
) -> None:
    letta.will(errors.ModelFailed("The model failed."))
    chat.ask(stream=streamed)
    (told,) = lines(log, "turn")
    assert told["outcome"] == "model_failed"


def test_a_fault_of_the_bridge_is_told(chat: Chat, letta: FakeGateway, log: pytest.LogCaptureFixture) -> None:
    letta.will(RuntimeError("oh"))
    chat.ask()
    assert lines(log, "turn")[0]["outcome"] == "internal_error"


def test_an_unknown_agent_is_told_once(chat: Chat, log: pytest.LogCaptureFixture) -> None:
    chat.ask(model="Bob")
    assert [told["outcome"] for told in lines(log, "turn")] == ["model_not_found"]
    assert lines(log, "request") == []


def test_other_requests_have_a_line_without_their_query(client: FlaskClient, log: pytest.LogCaptureFixture) -> None:
    client.get("/v1/models?api_key=canary-1")
    client.post("/v1/chat/completions?key=canary-2", data="{")
    client.get("/" + "x" * 5000)
    told = lines(log, "request")
    assert [(line["method"], line["status"]) for line in told] == [("GET", 200), ("POST", 400), ("GET", 404)]
    assert all(len(line["path"]) <= 200 for line in told)
    assert "canary" not in str([vars(record) for record in log.records])


def test_what_monitors_ask_all_the_time_is_not_logged(client: FlaskClient, log: pytest.LogCaptureFixture) -> None:
    client.get("/healthz")
    client.get("/readyz")
    assert lines(log, "request") == []


def test_a_refusal_is_told_with_its_name(client: FlaskClient, log: pytest.LogCaptureFixture) -> None:
    client.post("/v1/chat/completions", json={"model": "a\nb", "messages": []})
    (record,) = [record for record in log.records if record.levelno == logging.WARNING]
    fields: Any = record.fields  # type: ignore[attr-defined]
    assert (fields["status"], fields["code"], fields["param"]) == (400, None, "messages")
