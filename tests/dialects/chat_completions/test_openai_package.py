"""The openai package is the client. It validates strictly what it gets."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import openai
import pytest
from flask import Flask

from bridge import errors
from bridge.turn import AgentEvent, Reasoning, Stopped, Text, Used
from tests.fakes import FakeGateway

HELLO: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
RUN: list[AgentEvent] = [Reasoning("hm"), Text("Hel"), Text("lo"), Used(100, 10), Stopped("end_turn")]


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    return {**environment, "BRIDGE_API_KEYS": "a-long-enough-key"}


def client_of(app: Flask, key: str = "a-long-enough-key") -> openai.OpenAI:
    http = httpx2.Client(transport=httpx2.WSGITransport(app))
    return openai.OpenAI(
        base_url="http://bridge.test/v1",
        api_key=key,
        max_retries=0,
        http_client=http,
        _strict_response_validation=True,
    )


@pytest.fixture
def client(app: Flask) -> Iterator[openai.OpenAI]:
    with client_of(app) as made:
        yield made


def test_it_lists_the_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["Ada"]
    assert client.models.retrieve("Ada").owned_by == "letta"


def test_it_chats(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(*RUN)
    reply = client.chat.completions.create(model="Ada", messages=HELLO)
    assert (reply.choices[0].message.content, reply.choices[0].finish_reason) == ("Hello", "stop")
    assert reply.usage is not None
    assert reply.usage.total_tokens == 110


def test_it_chats_in_a_stream(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(*RUN)
    chunks = list(
        client.chat.completions.create(model="Ada", messages=HELLO, stream=True, stream_options={"include_usage": True})
    )
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "Hello"
    assert [chunk.usage.total_tokens for chunk in chunks if chunk.usage] == [110]


def test_its_stream_helper_joins_a_stream(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(*RUN)
    with client.chat.completions.stream(model="Ada", messages=HELLO) as stream:
        whole = stream.get_final_completion()
    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Hello", "stop")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (errors.ContextOverflow("context length"), openai.BadRequestError),
        (errors.LettaConflict("It is busy."), openai.ConflictError),
        (errors.ModelOverloaded("Too much."), openai.RateLimitError),
        (errors.LettaUnreachable("It is down."), openai.InternalServerError),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_it_raises_the_same_errors_as_with_openai(
    client: openai.OpenAI,
    letta: FakeGateway,
    failure: errors.BridgeError,
    kind: type[openai.APIStatusError],
    stream: bool,
) -> None:
    letta.will(failure)
    with pytest.raises(kind, match=failure.message) as caught:
        client.chat.completions.create(model="Ada", messages=HELLO, stream=stream)
    assert caught.value.code == failure.code


def test_it_reports_an_unknown_model_and_a_wrong_key(client: openai.OpenAI, app: Flask) -> None:
    with pytest.raises(openai.NotFoundError, match="no agent with the name or id 'Bob'"):
        client.chat.completions.create(model="Bob", messages=HELLO)
    with client_of(app, key="some-other-key") as stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_it_raises_when_a_stream_breaks(client: openai.OpenAI, letta: FakeGateway) -> None:
    letta.will(Text("Hel"), errors.LettaUnreachable("It broke."))
    stream = client.chat.completions.create(model="Ada", messages=HELLO, stream=True)
    assert next(stream).choices[0].delta.content == "Hel"
    with pytest.raises(openai.APIError, match="It broke"):
        next(stream)
