from __future__ import annotations

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.actors import Chat
from tests.fakes import FakeGateway


def test_the_headers_of_a_stream_forbid_buffers_and_caches(chat: Chat) -> None:
    headers = chat.ask(stream=True).headers
    assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert headers["X-Accel-Buffering"] == "no"
    assert headers["Cache-Control"] == "no-cache, no-store"


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


@pytest.mark.parametrize("headers", [{"X-Bridge-Aside": "1"}, {"X-Parent-Session-Id": "ses_1"}])
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
def test_the_reply_names_the_method(chat: Chat, streamed: bool) -> None:
    assert chat.ask(stream=streamed).headers["X-Bridge-Method"] == "approval"
