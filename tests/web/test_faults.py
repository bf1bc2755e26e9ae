"""Every failure reaches the client as an error with the right status, and the log with its details."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from flask.testing import FlaskClient

from bridge import errors
from bridge.letta.gateway import StoredMessage
from bridge.turn import AgentCall, AgentEvent, AgentReturn, RunStarted, Text
from tests.actors import Chat
from tests.fake_agent import new_id
from tests.fakes import FakeGateway
from tests.log_lines import whole_log

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
        letta.fails(failure, at="send_messages")
    else:
        letta.will(*before[early], failure)
    reply = chat.ask(stream=streamed)
    error = reply.error or {}
    assert (reply.status, reply.headers.get("Retry-After")) == (status, retry_after)
    assert (error["message"], error["type"], error["code"]) == (failure.message, failure.type, failure.code)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_that_letta_lost_is_answered_in_the_same_request(chat: Chat, letta: FakeGateway, streamed: bool) -> None:
    ada = letta._agents[letta.agents_named("Ada")[0].id]
    answer = StoredMessage(new_id("message"), "assistant_message", text="Hello")
    letta.will(lambda: ada.store(answer), errors.RunBrokenOff("It was lost."))
    reply = chat.ask("Hi there", stream=streamed)
    assert (reply.status, reply.text, reply.finish_reason) == (200, "Hello", "stop")
    assert [prompt.texts for prompt in letta.prompts] == [["Hi there"]]


@pytest.mark.parametrize("verb", ["agents_named", "agent", "features", "add_block", "send_messages"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_failure_of_any_call_to_letta_reaches_the_client(
    chat: Chat, letta: FakeGateway, verb: str, streamed: bool
) -> None:
    letta.fails(errors.LettaUnavailable("It is closed."), at=verb)
    assert chat.ask(system="be kind", stream=streamed).status == 503


@pytest.mark.parametrize(("failure", "status", "retry_after"), FAILURES)
def test_a_failure_in_mid_stream_ends_it_with_an_error_and_nothing_else(
    chat: Chat, letta: FakeGateway, failure: errors.BridgeError, status: int, retry_after: str | None
) -> None:
    letta.will(Text("Hel"), failure)
    reply = chat.ask(stream=True)
    assert (reply.status, reply.text, reply.finish_reason) == (200, "Hel", None)
    assert (reply.error or {})["message"] == failure.message


class TestAFaultOfTheBridge:
    """The client only hears that the bridge failed. The log has the details."""

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
    assert "canary" in whole_log(caplog)
    assert "canary" not in json.dumps(reply.error)


def test_the_words_of_letta_are_logged_after_a_failure_in_mid_stream(
    chat: Chat, letta: FakeGateway, caplog: pytest.LogCaptureFixture
) -> None:
    failure = errors.ModelFailed("The model failed.")
    failure.add_note("Letta said: canary")
    letta.will(Text("Hel"), failure)
    reply = chat.ask(stream=True)
    assert "canary" in whole_log(caplog)
    assert "canary" not in json.dumps(reply.error)


def test_a_refusal_is_logged_with_its_fields(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    client.post("/v1/chat/completions", json={"model": "a\nb", "messages": []})
    (record,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    fields: Any = record.fields  # type: ignore[attr-defined]
    assert (fields["status"], fields["code"], fields["param"]) == (400, None, "messages")
