from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient
from openai.types import Model

from bridge import errors
from bridge.letta.events import read_run
from bridge.turn import AgentCall, AgentEvent, AgentReturn, Reasoning, RunStarted, Stopped, Text, Used
from bridge.web import listener as web_chat
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.sse_checker import check_error
from tests.stream_cases import CASES, messages, stream
from tests.waiting import SOON

Quiet = Callable[..., tuple[Iterator[bytes], threading.Event]]


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """All that the log was told, fields included."""
    return str([vars(record) for record in caplog.records])


# --- models -----------------------------------------------------------------------------------------------


def test_agents_are_listed_as_models(chat: Chat, letta: FakeGateway) -> None:
    letta.has_agent("Bob")
    twins = [letta.has_agent("Eve").id, letta.has_agent("Eve").id]
    assert chat.models() == ["Ada", "Bob", *twins]


def test_a_server_without_agents_has_no_models(client: FlaskClient, letta: FakeGateway) -> None:
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    assert client.get("/v1/models").json == {"object": "list", "data": []}


@pytest.mark.parametrize("name", ["Ada", "a/b", "a b?c#d%2F", "\u00fcn\u00ef \U0001f600"])
def test_one_model_can_be_asked_for(client: FlaskClient, letta: FakeGateway, name: str) -> None:
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
def test_streamed_and_unstreamed_are_one(chat: Chat, letta: FakeGateway, case: str) -> None:
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


def test_a_stream_says_that_nothing_may_keep_it_back(chat: Chat) -> None:
    headers = chat.ask(stream=True).headers
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["X-Accel-Buffering"] == "no"
    assert headers["Cache-Control"] == "no-cache, no-store"


def test_deltas_are_sent_as_they_come(client: FlaskClient, letta: FakeGateway) -> None:
    go_on = threading.Event()
    letta.will(Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), Stopped("end_turn"))
    frames = _open_stream(client)
    assert b'"Hel"' in next(frames)
    go_on.set()
    assert b'"lo"' in next(frames)


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


def test_a_body_beyond_the_limit_is_refused(parameters: dict[str, Any], request: pytest.FixtureRequest) -> None:
    parameters["max_body"] = 1000
    chat: Chat = request.getfixturevalue("chat")
    assert chat.ask("x" * 800).status == 200
    reply = chat.ask("x" * 1000)
    assert reply.status == 413
    assert "larger than 1000 bytes" in (reply.error or {})["message"]


@pytest.mark.parametrize("header", [{}, {"Content-Type": "text/plain"}, {"Content-Type": "application/json; x=y"}])
def test_the_content_type_does_not_matter(client: FlaskClient, header: dict[str, str]) -> None:
    body = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}]}
    response = client.post("/v1/chat/completions", data=json.dumps(body).encode(), headers=header)
    assert response.status_code == 200


# --- failures ---------------------------------------------------------------------------------------------

FAILURES = [
    (errors.LettaUnreachable("It is down."), 502, "5"),
    (errors.LettaUnavailable("It is closed."), 503, "5"),
    (errors.LettaTimeout("It is slow."), 504, None),
    (errors.LettaRefusedCredentials("See LETTA_API_KEY."), 502, None),
    (errors.LettaConflict("It is busy."), 409, "2"),
    (errors.LettaRejected("It was refused."), 502, None),
    (errors.ModelFailed("The model failed."), 502, "5"),
    (errors.ModelOverloaded("Too much."), 429, "20"),
    (errors.ContextOverflow("context length"), 400, None),
]


@pytest.mark.parametrize(("failure", "status", "retry_after"), FAILURES)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("early", ["at the call", "before any event", "when the run is named", "in a tool's run"])
def test_a_failure_before_the_first_word_has_its_true_status(
    chat: Chat,
    letta: FakeGateway,
    failure: errors.BridgeError,
    status: int,
    retry_after: str | None,
    streamed: bool,
    early: str,
) -> None:
    before: dict[str, list[AgentEvent]] = {
        "before any event": [],
        "when the run is named": [RunStarted("run-1")],
        "in a tool's run": [AgentCall("message-1", "call_1", "a", "{}"), AgentReturn("message-2", "call_1", "")],
    }
    if early == "at the call":
        letta.fails(failure, at="send")
    else:
        letta.will(*before[early], failure)
    reply = chat.ask(stream=streamed)
    error = reply.error or {}
    assert (reply.status, reply.headers.get("Retry-After")) == (status, retry_after)
    assert (error["message"], error["type"], error["code"]) == (failure.message, failure.type, failure.code)


@pytest.mark.parametrize(("failure", "status", "retry_after"), FAILURES)
def test_a_failure_in_mid_stream_ends_it_with_an_error_and_nothing_else(
    chat: Chat, letta: FakeGateway, failure: errors.BridgeError, status: int, retry_after: str | None
) -> None:
    letta.will(Text("Hel"), failure)
    reply = chat.ask(stream=True)
    assert (reply.status, reply.text, reply.finish_reason) == (200, "Hel", None)
    assert (reply.error or {})["message"] == failure.message


@pytest.mark.parametrize("verb", ["agents_named", "agent", "features", "add_block", "send"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_of_any_call_to_letta_is_told(chat: Chat, letta: FakeGateway, verb: str, streamed: bool) -> None:
    letta.fails(errors.LettaUnavailable("It is closed."), at=verb)
    assert chat.ask(system="be kind", stream=streamed).status == 503


class TestAFaultOfTheBridge:
    """The client is told that it was one, and nothing of what it was; the log is told all."""

    @pytest.mark.parametrize("streamed", [False, True])
    def test_it_is_a_500_before_the_first_word(self, chat: Chat, letta: FakeGateway, streamed: bool) -> None:
        letta.will(ZeroDivisionError("canary"))
        reply = chat.ask(stream=streamed)
        assert (reply.status, (reply.error or {})["code"]) == (500, "internal_error")
        assert "canary" not in (reply.error or {})["message"]

    def test_it_ends_a_stream_with_an_error(self, chat: Chat, letta: FakeGateway) -> None:
        letta.will(Text("Hel"), ZeroDivisionError("canary"))
        reply = chat.ask(stream=True)
        assert (reply.text, (reply.error or {})["code"]) == ("Hel", "internal_error")
        assert "canary" not in (reply.error or {})["message"]


def test_the_words_of_letta_are_logged(chat: Chat, letta: FakeGateway, caplog: pytest.LogCaptureFixture) -> None:
    failure = errors.ModelFailed("The model failed.")
    failure.add_note("Letta said: canary")
    letta.will(failure)
    reply = chat.ask()
    assert "canary" in logged(caplog)
    assert "canary" not in json.dumps(reply.error)


def test_the_words_of_letta_are_logged_of_a_failure_in_mid_stream_too(
    chat: Chat, letta: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    failure = errors.ModelFailed("The model failed.")
    failure.add_note("Letta said: canary")
    letta.will(Text("Hel"), failure)
    reply = chat.ask(stream=True)
    assert "canary" in logged(caplog)
    assert "canary" not in json.dumps(reply.error)


# --- quiet, and clients that go ---------------------------------------------------------------------------


@pytest.fixture
def short_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_chat, "TICK", 0.001)


@pytest.fixture
def quiet(short_tick: None, parameters: dict[str, Any], letta: FakeGateway, request: pytest.FixtureRequest) -> Quiet:
    """Opens a stream with its headers due at once, of an agent that says nothing until it may."""

    def opened(ping_interval: float, *events: AgentEvent | Exception) -> tuple[Iterator[bytes], threading.Event]:
        parameters.update(ping_interval=ping_interval, header_wait=0.0)
        go_on = threading.Event()
        letta.will(lambda: go_on.wait(SOON), *events)
        return _open_stream(request.getfixturevalue("client")), go_on

    return opened


def test_a_quiet_stream_is_kept_open_by_comments(quiet: Quiet) -> None:
    frames, go_on = quiet(0.1, Text("Hello"), Stopped("end_turn"))
    assert [next(frames), next(frames)] == [b": ping\n\n", b": ping\n\n"]
    go_on.set()
    assert b"Hello" in next(frame for frame in frames if frame != b": ping\n\n")


def test_a_quiet_stream_begins_with_a_comment_when_its_headers_are_due(quiet: Quiet) -> None:
    frames, go_on = quiet(25, Text("Hello"), Stopped("end_turn"))
    assert next(frames) == b": ping\n\n"
    go_on.set()
    assert b"Hello" in next(frames)


def test_a_failure_after_the_headers_were_sent_is_an_error_event(quiet: Quiet) -> None:
    frames, go_on = quiet(0.1, errors.LettaUnreachable("It broke."))
    assert next(frames) == b": ping\n\n"
    go_on.set()
    *_, last = frames
    assert check_error(json.loads(last.removeprefix(b"data: ")))["message"] == "It broke."


@pytest.mark.fault("clients that hang up")
@pytest.mark.usefixtures("short_tick")
def test_a_client_that_hangs_up_ends_its_stream_but_not_the_turn(client: FlaskClient, letta: FakeGateway) -> None:
    go_on, done = threading.Event(), threading.Event()
    letta.will(Text("Hel"), lambda: go_on.wait(SOON), Text("lo"), done.set, Stopped("end_turn"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames = _open_stream(client, ours)
        assert b"Hel" in next(frames)
        theirs.close()
        assert list(frames) == []
    go_on.set()
    assert done.wait(SOON)


@pytest.mark.fault("clients that hang up")
@pytest.mark.usefixtures("short_tick")
def test_a_client_that_hangs_up_frees_the_worker_that_held_its_answer(
    client: FlaskClient, letta: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = threading.Event()
    letta.will(lambda: go_on.wait(SOON), Text("Hello"), Stopped("end_turn"))
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        body = {"model": "Ada", "messages": [{"role": "user", "content": "Hi"}]}
        response = client.post("/v1/chat/completions", json=body, environ_overrides={"gunicorn.socket": ours})
    go_on.set()
    assert response.status_code == 499
    assert "client_gone" in logged(caplog)


@pytest.mark.fault("clients that hang up")
def test_a_client_that_hangs_up_before_the_end_of_a_quick_answer_gets_it_when_it_comes_back(
    client: FlaskClient, chat: Chat, letta: FakeGateway
) -> None:
    """What is written to a connection that the client has closed is taken without a fault, for a moment."""
    ours, theirs = socket.socketpair()
    with ours:
        frames = _open_stream(client, ours)
        theirs.close()
        assert b"[DONE]" not in b"".join(frames)
    assert chat.ask("Hi", stream=True, usage=False).text == "You said: Hi"
    assert len(letta.prompts) == 1


@pytest.mark.parametrize("headers", [{"X-Bridge-Aside": "1"}, {"X-Parent-Session-Id": "ses_1"}])
def test_a_header_says_that_a_request_is_not_for_the_agents_memory(
    chat: Chat, letta: FakeGateway, headers: dict[str, str]
) -> None:
    chat.ask(headers=headers)
    (prompt,) = letta.prompts
    assert prompt.agent_id != letta.agents_named("Ada")[0].id
    assert letta.calls.count("delete_agent") == 1


def test_a_request_beside_the_conversation_goes_to_the_agent_that_has_the_name_now(
    chat: Chat, letta: FakeGateway
) -> None:
    chat.ask()
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    letta.has_agent("Ada")
    assert chat.ask(headers={"X-Bridge-Aside": "1"}).status == 200


def _open_stream(client: FlaskClient, connection: socket.socket | None = None) -> Any:
    body = {"model": "Ada", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
    overrides = {} if connection is None else {"gunicorn.socket": connection}
    response = client.post("/v1/chat/completions", json=body, environ_overrides=overrides)
    assert response.status_code == 200
    return response.iter_encoded()
