"""The openai package is the client. It validates strictly what it gets, and the order of a stream's events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from flask import Flask

from bridge.turn import AgentEvent, Reasoning, Stopped, Text, Used
from tests.dialects.chat_completions.test_openai_package import client_of
from tests.fakes import FakeGateway

RUN: list[AgentEvent] = [Reasoning("hm"), Text("Hel"), Text("lo"), Used(100, 10), Stopped("end_turn")]
READ: Any = {
    "type": "function",
    "name": "read",
    "description": "Reads a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_API_KEYS": "a-long-enough-key"}


@pytest.fixture
def client(app: Flask) -> Iterator[openai.OpenAI]:
    with client_of(app) as made:
        yield made


def test_it_answers(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(*RUN)
    response = client.responses.create(model="Ada", input="Hello")
    assert (response.output_text, response.status) == ("Hello", "completed")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.total_tokens) == (100, 110)


def test_it_streams(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(*RUN)
    with client.responses.stream(model="Ada", input="Hello") as stream:
        events = [*stream]
        final = stream.get_final_response()
    assert final.output_text == "Hello"
    assert [event.sequence_number for event in events] == [*range(len(events))]
