"""Tests of the scripted model over HTTP, with OpenAI's own client."""

import base64
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest
import requests

from testbed.model import ModelLimits, ScriptedModel
from testbed.model.embeddings import embedding
from testbed.model.records import Records
from tests.waiting import until

pytestmark = pytest.mark.servers

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ORPHAN: Any = {"role": "tool", "tool_call_id": "call_1", "content": "r"}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as scripted:
        yield scripted


@pytest.fixture
def client(model: ScriptedModel) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=model.url, api_key="sk-secret", max_retries=0, timeout=20) as made:
        yield made


def ask(client: openai.OpenAI, *texts: str, **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text} for text in texts]
    return client.chat.completions.create(model="gpt-4o-mini", messages=messages, **more)


def test_the_message_dictates_the_answer(client: openai.OpenAI) -> None:
    (choice,) = ask(client, "!say Hé").choices
    assert (choice.message.content, choice.finish_reason) == ("Hé", "stop")


def test_calls_have_unique_ids_in_openais_format(client: openai.OpenAI) -> None:
    script = '!call get_weather {"city": "Oslo"}\n!call get_weather {"city": "Rome"}'
    choices = [ask(client, script, tools=[WEATHER]).choices[0] for _ in range(2)]
    calls = [call for choice in choices for call in choice.message.tool_calls]
    assert [call.function.arguments for call in calls[:2]] == ['{"city": "Oslo"}', '{"city": "Rome"}']
    assert {choice.finish_reason for choice in choices} == {"tool_calls"}
    assert len({call.id for call in calls}) == 4
    assert all(re.fullmatch(r"call_[0-9a-f]{24}", call.id) for call in calls)


def test_a_streamed_answer_is_the_same_answer(model: ScriptedModel, client: openai.OpenAI) -> None:
    text = '!say Hé, 😀 and more\n!call get_weather {"city": "Oslo"}'
    with client.chat.completions.stream(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": text}],
        tools=[WEATHER],
        stream_options={"include_usage": True},
    ) as stream:
        streamed = stream.get_final_completion()
    whole = ask(client, text, tools=[WEATHER])
    (one,), (other,) = streamed.choices, whole.choices
    assert one.message.content == other.message.content == "Hé, 😀 and more"
    assert one.message.tool_calls is not None
    assert one.message.tool_calls[0].function.arguments == other.message.tool_calls[0].function.arguments
    assert streamed.usage == whole.usage
    recorded = model.last_request().reply["choices"][0]["message"]
    assert recorded["content"] == "Hé, 😀 and more"


def test_a_stream_consists_of_server_sent_events_with_done_at_the_end(model: ScriptedModel) -> None:
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "!say a b"}]}
    answer = requests.post(f"{model.url}/chat/completions", json=body, timeout=20)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    *events, done, nothing = answer.text.split("\n\n")
    assert (done, nothing) == ("data: [DONE]", "")
    deltas = [json.loads(event.removeprefix("data: "))["choices"][0]["delta"] for event in events]
    assert deltas == [{"role": "assistant", "content": "", "refusal": None}, {"content": "a"}, {"content": " b"}, {}]


@pytest.mark.parametrize(
    ("script", "status", "code", "text"),
    [
        ("!status 400 context_length_exceeded", 400, "context_length_exceeded", "This model's maximum context length"),
        ("!status 429 insufficient_quota", 429, "insufficient_quota", "You exceeded your current quota"),
        ("!status 429", 429, "rate_limit_exceeded", "Rate limit reached"),
        ("!status 503 Come back", 503, None, "Come back"),
        ("!status 418", 418, None, "The request failed."),
    ],
)
def test_a_dictated_error_has_openais_form(
    model: ScriptedModel, client: openai.OpenAI, script: str, status: int, code: str | None, text: str
) -> None:
    with pytest.raises(openai.APIStatusError) as raised:
        ask(client, script)
    assert (raised.value.status_code, raised.value.code) == (status, code)
    assert text in str(raised.value)
    assert model.refusals == []


def test_a_dictated_error_is_not_retried(model: ScriptedModel) -> None:
    with openai.OpenAI(base_url=model.url, api_key="x") as client, pytest.raises(openai.InternalServerError):
        ask(client, "!status 500")
    assert len(model.requests()) == 1


def test_a_cut_answer_has_no_end(model: ScriptedModel, client: openai.OpenAI) -> None:
    with pytest.raises(openai.APIConnectionError):
        ask(client, "!say some words to be cut\n!cut")
    got = []
    with pytest.raises(openai.APIConnectionError):
        got.extend(chunk.choices[0].delta.content for chunk in ask(client, "!say a b c d !\n!cut", stream=True))
    assert "".join(text or "" for text in got) == "a b c"
    assert [request.delivered for request in model.requests()] == [False, False]


def test_a_malformed_context_is_refused_and_recorded(model: ScriptedModel, client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="must be a response to a preceeding message"):
        client.chat.completions.create(model="m", messages=[ORPHAN])
    (refused,) = model.refusals
    assert refused.status == 400
    assert "preceeding message" in repr(refused)
    assert model.take_refusals() == [refused]
    assert model.refusals == []
    assert refused.refusal is not None


def test_a_malformed_script_counts_as_refused(model: ScriptedModel, client: openai.OpenAI) -> None:
    assert "could not read the script" in ask(client, "!call").choices[0].message.content
    (refused,) = model.refusals
    assert refused.refusal is not None
    assert refused.refusal.code == "script_error"


def test_limits_can_be_changed_while_the_model_runs(model: ScriptedModel, client: openai.OpenAI) -> None:
    loose: Any = {"type": "function", "function": WEATHER["function"] | {"strict": True}}
    ask(client, "!say a", tools=[loose])
    assert "'additionalProperties' is required" in model.last_request().violations[0]
    model.limits = ModelLimits(strict_schemas="enforce")
    with pytest.raises(openai.BadRequestError, match="'additionalProperties' is required"):
        ask(client, "!say a", tools=[loose])


def test_requests_are_recorded_without_secrets(model: ScriptedModel, client: openai.OpenAI) -> None:
    ask(client, 'Is "Oslo" cold?', tools=[WEATHER], tool_choice="auto")
    ask(client, "And Rome?")
    first = model.last_request(containing='"Oslo"')
    assert (first.number, first.path, first.status, first.delivered) == (1, "/v1/chat/completions", 200, True)
    assert (list(first.tools), first.tool_choice) == (["get_weather"], "auto")
    assert first.story() == ['user: Is "Oslo" cold?']
    assert first.reply["choices"][0]["message"]["content"] == 'You said: Is "Oslo" cold?'
    assert "sk-secret" not in str(first.headers)
    assert [request.number for request in model.requests()] == [1, 2]
    with pytest.raises(LookupError, match="'Paris'"):
        model.last_request(containing="Paris")
    model.clear()
    assert model.requests() == []


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("wrapping_ascii_only", [True, False, None])
def test_texts_are_found_in_any_wrapping(
    model: ScriptedModel, ascii_only: bool, wrapping_ascii_only: bool | None
) -> None:
    text = content = 'A "é" \\ \n 😀'
    if wrapping_ascii_only is not None:
        content = json.dumps({"type": "user_message", "message": text}, ensure_ascii=wrapping_ascii_only)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": content}]}, ensure_ascii=ascii_only)
    requests.post(f"{model.url}/chat/completions", data=body.encode(), timeout=20).raise_for_status()
    assert len(model.requests(containing=text)) == 1
    assert model.requests(containing=text + "!") == []


def test_a_test_can_wait_for_a_request_that_is_being_answered(model: ScriptedModel, client: openai.OpenAI) -> None:
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, client, "!delay 30 !say late")
        (running,) = model.wait_for_requests(containing="late")
        assert running.delivered is False
        model.close()
        with pytest.raises(openai.APIConnectionError):
            answer.result()
    with pytest.raises(TimeoutError, match="got 1 of 2 requests with 'late'"):
        model.wait_for_requests(2, containing="late", seconds=0.01)


def test_closing_ends_a_slow_stream(model: ScriptedModel, client: openai.OpenAI) -> None:
    stream = ask(client, "!slow 60 !say a b c", stream=True)
    next(stream)
    model.close()
    with pytest.raises(openai.APIConnectionError):
        list(stream)


def test_closing_leaves_no_thread_and_no_socket() -> None:
    threads, before = set(threading.enumerate()), sockets()
    with ScriptedModel() as model, requests.Session() as session:
        for _ in range(3):
            session.get(f"{model.url}/models", timeout=20)
        idle = socket.create_connection(("127.0.0.1", model.port))
    idle.close()
    assert sockets() <= before
    until(lambda: set(threading.enumerate()) <= threads)  # a thread ends a moment after it has closed its connection


def sockets() -> set[str]:
    """Returns the open sockets of this process."""
    found = set()
    for number in os.listdir("/dev/fd"):
        with suppress(FileNotFoundError):  # the descriptor of this listing
            found.add(os.readlink(f"/dev/fd/{number}"))
    return {one for one in found if one.startswith("socket:")}


def test_many_clients_are_served_at_once(model: ScriptedModel) -> None:
    def talk(number: int) -> list[str]:
        with openai.OpenAI(base_url=model.url, api_key="x", timeout=60) as own:
            return [ask(own, f"!say {number}-{turn}").choices[0].message.content for turn in range(10)]

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(talk, range(20)))
    assert answers == [[f"{number}-{turn}" for turn in range(10)] for number in range(20)]
    assert [request.number for request in model.requests()] == list(range(1, 201))


def test_embeddings_are_the_same_for_the_same_text(model: ScriptedModel, client: openai.OpenAI) -> None:
    made = client.embeddings.create(model="text-embedding-3-small", input=["a", "b", "a"])
    first, second, third = (one.embedding for one in made.data)
    assert first == third
    assert first != second
    assert len(first) == 1536
    assert sum(number * number for number in first) == pytest.approx(1.0)
    raw = requests.post(
        f"{model.url}/embeddings", json={"model": "m", "input": "a", "encoding_format": "base64"}, timeout=20
    ).json()
    packed = base64.b64decode(raw["data"][0]["embedding"])
    assert struct.unpack("<1536f", packed) == pytest.approx(embedding("a"))


def test_embeddings_accept_tokens_and_dimensions(client: openai.OpenAI) -> None:
    made = client.embeddings.create(model="m", input=[[1, 2], [3]], dimensions=8, encoding_format="float")
    assert [len(one.embedding) for one in made.data] == [8, 8]


@pytest.mark.parametrize("given", [{"input": []}, {}, {"input": "a", "encoding_format": "hex"}])
def test_an_invalid_request_for_embeddings_is_refused(model: ScriptedModel, given: dict[str, Any]) -> None:
    assert requests.post(f"{model.url}/embeddings", json={"model": "m"} | given, timeout=20).status_code == 400
    assert len(model.refusals) == 1


def test_models_are_listed(client: openai.OpenAI) -> None:
    assert "gpt-4o-mini" in [one.id for one in client.models.list()]
    assert client.models.retrieve("gpt-4o").id == "gpt-4o"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-9")


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"a":' * 100_000])
def test_a_body_that_is_not_a_json_object_is_refused(model: ScriptedModel, body: bytes) -> None:
    answer = requests.post(f"{model.url}/chat/completions", data=body, timeout=20)
    assert answer.status_code == 400
    assert "could not parse the JSON body" in answer.json()["error"]["message"]


def test_an_unknown_path_is_refused(model: ScriptedModel) -> None:
    answer = requests.post(f"{model.url}/responses", json={}, timeout=20)
    assert (answer.status_code, answer.json()["error"]["message"]) == (404, "Invalid URL (POST /v1/responses)")
    assert len(model.refusals) == 1


def test_another_process_reads_and_clears_the_records(model: ScriptedModel, client: openai.OpenAI) -> None:
    root = model.url.removesuffix("/v1")
    ask(client, "Oslo?")
    ask(client, "Rome?")
    (found,) = requests.get(f"{root}/_requests", params={"containing": "Rome"}, timeout=20).json()
    assert (found["number"], found["story"], found["refusal"]) == (2, ["user: Rome?"], None)
    assert requests.get(f"{root}/_refusals", timeout=20).json() == []
    requests.delete(f"{root}/_requests", timeout=20)
    assert model.requests(path=None) == []


def test_the_number_and_size_of_records_are_limited() -> None:
    records = Records(most=3, most_bytes=100)
    for size in (10, 10, 10, 10):
        records.add("POST", "/v1/chat/completions", {}, b"x" * size)
    assert [one.number for one in records.find()] == [2, 3, 4]
    records.add("POST", "/v1/chat/completions", {}, b"x" * 95)
    assert [one.number for one in records.find()] == [5]


def test_the_model_can_be_run_by_hand() -> None:
    command = [sys.executable, "-m", "testbed.model", "--port", "0", "--max-tools", "1"]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [WEATHER, WEATHER]}
        answer = requests.post(f"{url}/chat/completions", json=body, timeout=20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert "maximum length 1," in answer.json()["error"]["message"]


def test_an_occupied_port_is_named_in_the_error(model: ScriptedModel) -> None:
    command = [sys.executable, "-m", "testbed.model", "--port", str(model.port)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"cannot listen at 127.0.0.1:{model.port}: Address already in use" in done.stderr
