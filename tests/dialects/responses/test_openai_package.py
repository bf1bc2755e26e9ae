"""The openai package is the client. It validates strictly what it gets, and the order of a stream's events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from flask import Flask
from pydantic import BaseModel

from bridge import errors
from bridge.turn import AgentCall, AgentEvent, Reasoning, Stopped, Text, Used
from tests.dialects.chat_completions.test_openai_package import client_of
from tests.fakes import FakeGateway, new_id

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


def test_it_streams_thoughts_words_and_calls_of_both_kinds(client: openai.OpenAI, letta: FakeGateway) -> None:
    patch: Any = {"type": "custom", "name": "patch", "description": "Changes files."}
    message = new_id("message")
    calls = [
        AgentCall(message, new_id("call"), "read", '{"path": "a"}', held=True),
        AgentCall(message, new_id("call"), "patch", '{"input": "*** Begin Patch"}', held=True, index=1),
    ]
    letta.will(Reasoning("hm", "m1"), Text("Let me see.", "m1"), *calls, Used(10, 1), Stopped("requires_approval"))
    with client.responses.stream(model="Ada", input="Hello", tools=[READ, patch]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert [item.type for item in final.output] == ["reasoning", "message", "function_call", "custom_tool_call"]
    called = final.output[2:]
    assert [getattr(item, "arguments", getattr(item, "input", None)) for item in called] == [
        '{"path": "a"}',
        "*** Begin Patch",
    ]
    assert "response.function_call_arguments.delta" in kinds
    assert "response.custom_tool_call_input.done" in kinds


def test_it_parses_an_answer_in_a_form(client: openai.OpenAI, letta: FakeGateway) -> None:
    class Word(BaseModel):
        word: str

    letta.will_say('{"word": "swordfish"}')
    assert client.responses.parse(model="Ada", input="Which?", text_format=Word).output_parsed == Word(word="swordfish")
    letta.will_say('{"word": "swordfish"}')
    with client.responses.stream(model="Ada", input="And now?", text_format=Word) as stream:
        assert stream.get_final_response().output_parsed == Word(word="swordfish")


def test_it_retrieves_lists_and_deletes(client: openai.OpenAI) -> None:
    made = client.responses.create(model="Ada", input="Hello")
    assert client.responses.retrieve(made.id).output_text == made.output_text
    (item,) = client.responses.input_items.list(made.id).data
    assert item.type == "message"
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)


def test_it_hears_what_became_of_a_stream_that_failed(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(Text("Hel"), errors.LettaUnavailable("It is restarted."))
    events = [*client.responses.create(model="Ada", input="Hello", stream=True)]
    last = events[-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == ("server_error", "It is restarted.")
