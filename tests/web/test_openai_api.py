from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient
from openai.types import Model

from bridge import errors
from bridge.directory import name_with_digits
from bridge.letta.events import read_run
from bridge.turn import AgentCall, AgentReturn, Reasoning, RunStarted, Stopped, Text, Used
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.sse_checker import check_error
from tests.stream_cases import CASES, messages, stream

# --- models -----------------------------------------------------------------------------------------------


def test_agents_are_listed_as_models(chat: Chat, letta: FakeGateway) -> None:
    letta.has_agent("Bob")
    twins = [name_with_digits(letta.has_agent("Eve")) for _ in range(2)]
    assert chat.models() == ["Ada", "Bob", *twins]


def test_a_server_without_agents_has_no_models(client: FlaskClient, letta: FakeGateway) -> None:
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    assert client.get("/v1/models").json == {"object": "list", "data": []}


@pytest.mark.parametrize("name", ["Ada", "a/b", "a b?c#d%2F", "\u00fcn\u00ef \U0001f600"])
def test_one_model_can_be_read(client: FlaskClient, letta: FakeGateway, name: str) -> None:
    agent = letta.agents_named("Ada")[0]
    letta.renames_agent(agent.id, name)
    for asked in (name, agent.id):
        response = client.get("/v1/models/" + _quoted(asked))
        assert response.status_code == 200
        assert Model.model_validate(response.json, strict=True).id == name


def test_an_unknown_model_is_not_found(client: FlaskClient) -> None:
    response = client.get("/v1/models/Bob")
    assert response.status_code == 404
    assert check_error(response.json or {})["code"] == "model_not_found"


def test_models_cannot_be_listed_while_letta_is_down(client: FlaskClient, letta: FakeGateway) -> None:
    letta.fails(errors.LettaUnreachable("It is down."), at="agents")
    response = client.get("/v1/models")
    assert (response.status_code, response.headers["Retry-After"]) == (502, "5")
    check_error(response.json or {})


def _quoted(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


# --- an answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
def test_the_agent_answers(chat: Chat, letta: FakeGateway, streamed: bool) -> None:
    letta.will(Reasoning("hm"), Text("Hel"), Text("lo"), Used(100, 10), Stopped("end_turn"))
    reply = chat.ask("Hi there", stream=streamed)
    assert (reply.status, reply.text, reply.reasoning, reply.finish_reason) == (200, "Hello", "hm", "stop")
    assert reply.usage == {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    assert letta.prompts[0].texts == ["Hi there"]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_model_of_the_reply_is_the_one_that_was_asked(chat: Chat, letta: FakeGateway, streamed: bool) -> None:
    ada = letta.agents_named("Ada")[0].id
    assert chat.ask(stream=streamed).model == "Ada"
    assert chat.ask(model=ada, stream=streamed).model == ada


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "\U0001f600\u00e9\u202e\u2028", 'a"b\\c\n\td', "\x7f\x1b[31m", "data: [DONE]\n\n"]
)
def test_a_text_arrives_as_it_is_both_ways(chat: Chat, letta: FakeGateway, text: str) -> None:
    for streamed in (False, True):
        letta.will_say(text)
        assert chat.ask(text, stream=streamed).text == text
        assert letta.prompts[-1].texts == [text]


@pytest.mark.parametrize("streamed", [False, True])
def test_the_tools_of_the_server_are_not_shown(chat: Chat, letta: FakeGateway, streamed: bool) -> None:
    letta.will(
        RunStarted("run-1"),
        Text("Let me see. "),
        AgentCall("message-1", "call_1", "conversation_search", "{}"),
        AgentReturn("message-2", "call_1", "None"),
        Text("Noted."),
        Stopped("end_turn"),
    )
    reply = chat.ask(stream=streamed)
    assert (reply.text, reply.finish_reason) == ("Let me see. Noted.", "stop")
    assert not reply.message.get("tool_calls")


@pytest.mark.parametrize("case", CASES)
def test_streamed_and_unstreamed_replies_say_the_same(chat: Chat, letta: FakeGateway, case: str) -> None:
    """For the streams of all generations of Letta: the same answer, or the same error."""
    for _ in range(2):
        letta.will(*_steps(case))
    whole, streamed = chat.ask(), chat.ask(stream=True)
    assert (streamed.error, whole.error is None) == (whole.error, whole.status == 200)
    assert whole.error or streamed.comparable == whole.comparable


def _steps(case: str) -> list[Any]:
    steps: list[Any] = []
    try:
        steps.extend(read_run(messages([stream(case)])))
    except errors.BridgeError as failure:
        steps.append(failure)
    return steps


# --- requests that are refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (b"", 400, None, "invalid_json"),
        (b"{", 400, None, "invalid_json"),
        (b"[1]", 400, None, "invalid_json"),
        (b"[" * 100_000, 400, None, "nesting_too_deep"),
        (b'{"messages": []}', 400, "model", None),
        (b'{"model": "Ada"}', 400, "messages", None),
        (b'{"model": "Ada", "messages": [{"role": {}}]}', 400, "messages[0].role", None),
        (b'{"model": "Ada", "messages": [{"role": "assistant", "content": "Hi"}]}', 400, "messages", None),
        (b'{"model": "Bob", "messages": [{"role": "user", "content": "Hi"}]}', 404, "model", "model_not_found"),
        (b'{"model": "\\ud800", "messages": [{"role": "user", "content": "Hi"}]}', 404, "model", "model_not_found"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_bad_request_is_refused(
    chat: Chat, letta: FakeGateway, body: bytes, status: int, param: str | None, code: str | None, streamed: bool
) -> None:
    sent = body.replace(b'{"model"', b'{"stream": true, "model"') if streamed else body
    reply = chat.post(sent)
    error = reply.error or {}
    assert (reply.status, error["param"], error["code"]) == (status, param, code)
    assert letta.prompts == []
