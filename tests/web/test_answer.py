from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest

from bridge.turn import Reasoning, Stopped, Text
from bridge.web import answer
from bridge.web.answer import TurnResponse
from tests.actors import Chat
from tests.fakes import FakeGateway


def test_the_headers_of_a_stream_forbid_buffers_and_caches(chat: Chat) -> None:
    headers = chat.ask(stream=True).headers
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["X-Accel-Buffering"] == "no"
    assert headers["Cache-Control"] == "no-cache, no-store"


@pytest.mark.parametrize("streamed", [False, True])
def test_what_belongs_to_a_reply_is_freed_with_it(chat: Chat, monkeypatch: pytest.MonkeyPatch, streamed: bool) -> None:
    """Without a search for garbage. The reply has the request, its body and what was read of the turn."""
    replies: list[ref[TurnResponse]] = []

    class Kept(TurnResponse):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            replies.append(ref(self))

    monkeypatch.setattr(answer, "TurnResponse", Kept)
    gc.disable()
    try:
        assert chat.ask(stream=streamed).status == 200
        assert [reply() for reply in replies] == [None]
    finally:
        gc.enable()


def test_a_body_beyond_the_limit_is_refused(parameters: dict[str, Any], request: pytest.FixtureRequest) -> None:
    parameters["max_body"] = 1000
    chat: Chat = request.getfixturevalue("chat")
    assert chat.ask("x" * 800).status == 200
    reply = chat.ask("x" * 1000)
    assert reply.status == 413
    assert "larger than 1000 bytes" in (reply.error or {})["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Bridge-Aside": "1"},
        {"X-Parent-Session-Id": "ses_1"},
        {"X-Codex-Parent-Thread-Id": "01a1f320", "Session-Id": "01a1f320", "Thread-Id": "01a1f321"},
        {"X-OpenAI-Subagent": "review", "Session-Id": "01a1f320", "Thread-Id": "01a1f321"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_a_header_keeps_a_request_away_from_the_agents_memory(
    chat: Chat, letta: FakeGateway, headers: dict[str, str]
) -> None:
    chat.ask(headers=headers)
    (prompt,) = letta.prompts
    assert prompt.agent_id != letta.agents_named("Ada")[0].id
    assert letta.calls.count("delete_agent") == 1


def test_a_request_aside_goes_to_the_agent_that_has_the_name_now(chat: Chat, letta: FakeGateway) -> None:
    chat.ask()
    letta.loses_agent(letta.agents_named("Ada")[0].id)
    letta.has_agent("Ada")
    assert chat.ask(headers={"X-Bridge-Aside": "1"}).status == 200


@pytest.mark.parametrize("streamed", [False, True])
def test_the_reply_says_how_many_older_messages_the_agent_was_told(chat: Chat, streamed: bool) -> None:
    messages = [
        {"role": "user", "content": "a.py: one"},
        {"role": "assistant", "content": "Ok."},
        {"role": "user", "content": "Fix it"},
    ]
    reply = chat.ask(messages=messages, stream=streamed)
    assert reply.headers["X-Bridge-Told"] == "2"
    if reply.streamed is not None:
        assert reply.streamed.comments == ("the agent is told 2 older messages that it has not heard",)
    assert "X-Bridge-Told" not in chat.ask("Hello", stream=streamed).headers


@pytest.mark.parametrize("streamed", [False, True])
def test_the_reply_names_the_method(chat: Chat, streamed: bool) -> None:
    assert chat.ask(stream=streamed).headers["X-Bridge-Method"] == "approval"


JSON = {"type": "json_object"}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "outcome", "text"),
    [
        (['{"a": 1}'], "valid", '{"a": 1}'),
        (['```json\n{"a": 1}\n```'], "valid", '{"a": 1}'),
        (["I don't know.", 'Here: {"a": 1}'], "valid", '{"a": 1}'),
        (["I don't know.", "Really."], "invalid", "Really."),
    ],
)
def test_a_header_says_whether_the_reply_has_the_wanted_form(
    chat: Chat, letta: FakeGateway, said: list[str], outcome: str, text: str, streamed: bool
) -> None:
    for one in said:
        letta.will_say(one)
    reply = chat.ask(response_format=JSON, stream=streamed)
    assert (reply.headers["X-Bridge-Format"], reply.text, reply.finish_reason) == (outcome, text, "stop")
    assert (reply.usage or {})["completion_tokens"] == 10 * len(said)
    assert len(letta.prompts) == len(said)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_of_any_form_has_no_such_header(chat: Chat, streamed: bool) -> None:
    assert "X-Bridge-Format" not in chat.ask(stream=streamed).headers


def test_thoughts_do_not_send_the_headers_of_a_reply_that_is_not_checked_yet(chat: Chat, letta: FakeGateway) -> None:
    letta.will(Reasoning("hm"), Text("{}"), Stopped("end_turn"))
    reply = chat.ask(response_format=JSON, stream=True)
    assert (reply.headers["X-Bridge-Format"], reply.reasoning, reply.text) == ("valid", "hm", "{}")


def test_a_repeat_gets_the_checked_reply_and_its_header(chat: Chat, letta: FakeGateway) -> None:
    letta.will_say("I don't know.")
    letta.will_say('Here: {"a": 1}')
    key = {"Idempotency-Key": "one"}
    first = chat.ask(response_format=JSON, headers=key)
    again = chat.ask(response_format=JSON, stream=True, headers=key)
    assert (again.headers["X-Bridge-Format"], again.comparable) == ("valid", first.comparable)
    assert len(letta.prompts) == 2


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"$ref": "http://127.0.0.1:9/x"}, {"description": "x" * 300_000}])
def test_an_unusable_schema_is_refused_before_the_agent_is_asked(
    chat: Chat, letta: FakeGateway, schema: dict[str, Any]
) -> None:
    reply = chat.ask(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}})
    assert (reply.status, (reply.error or {})["param"]) == (400, "response_format.json_schema.schema")
    assert letta.prompts == []
