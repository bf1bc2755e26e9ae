"""Clients that do not wait for the answer: they hang up and ask again, stop the answer, or say something else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import openai
import pytest
import requests
from openai.types.chat import ChatCompletionMessageParam

from testbed.redis import Redis
from testbed.service import Service
from tests.background_request import BackgroundRequest
from tests.letta_server import LettaServerStub
from tests.services import PROMPT, environment
from tests.waiting import SOON, until

pytestmark = [pytest.mark.servers, pytest.mark.fault("clients that hang up")]

HELLO = {"role": "user", "content": "Hello"}
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
GOODBYE = {"role": "user", "content": "Goodbye"}


@pytest.fixture(params=["local", "redis"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings by which two services know of each other."""
    if request.param == "local":
        yield {}
        return
    with Redis() as redis:
        yield {"REDIS_URL": redis.url}


@pytest.fixture
def letta() -> Iterator[LettaServerStub]:
    """Says its only word after a while."""
    with LettaServerStub(["Hello"], pause=2.5) as server:
        yield server


def runs(letta: LettaServerStub) -> int:
    return sum(path.endswith("/messages/stream") for _, path, _ in letta.asked)


def hang_up(bridge: Service, seconds: float, *messages: Any, **fields: Any) -> None:
    body = {"model": "Ada", "messages": messages, **fields}
    with suppress(requests.Timeout, requests.ConnectionError):
        requests.post(f"{bridge.url}/v1/chat/completions", json=body, timeout=seconds)
        pytest.fail("the answer came before the client hung up")


def ask(bridge: Service, *messages: Any, **fields: Any) -> str:
    body = {"model": "Ada", "messages": messages, **fields}
    answer = requests.post(f"{bridge.url}/v1/chat/completions", json=body, timeout=2 * SOON)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize("stream", [False, True])
def test_an_sdk_with_a_short_timeout_gets_its_answer_from_one_run(
    letta: LettaServerStub, shared: dict[str, str], tmp_path: Path, stream: bool
) -> None:
    with Service(environment(letta.url, tmp_path, **shared), tmp_path / "log") as bridge:
        client = openai.OpenAI(base_url=f"{bridge.url}/v1", api_key="none", timeout=0.6, max_retries=8)
        if stream:
            with client.chat.completions.create(model="Ada", messages=MESSAGES, stream=True) as chunks:
                said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        else:
            answer = client.chat.completions.create(model="Ada", messages=MESSAGES)
            said = answer.choices[0].message.content or ""
    assert said == "Hello"
    assert (runs(letta), letta.cancels) == (1, 0)


def test_a_stream_that_timed_out_is_read_by_its_repeat_from_the_start(letta: LettaServerStub, tmp_path: Path) -> None:
    with Service(environment(letta.url, tmp_path), tmp_path / "log", PROMPT | {"ping_interval": 60.0}) as bridge:
        body = {"model": "Ada", "messages": [HELLO], "stream": True}
        for _ in range(2):
            with (
                pytest.raises((requests.Timeout, requests.ConnectionError), match="timed out"),
                requests.post(f"{bridge.url}/v1/chat/completions", json=body, timeout=0.6, stream=True) as early,
            ):
                early.content  # noqa: B018 # it is read
        assert ask(bridge, HELLO) == "Hello"
    assert (runs(letta), letta.cancels) == (1, 0)


def test_a_person_who_stops_the_answer_stops_the_run(tmp_path: Path) -> None:
    with (
        LettaServerStub(["word "] * 100, pause=0.2) as letta,
        Service(environment(letta.url, tmp_path), tmp_path / "log") as bridge,
    ):
        body = {"model": "Ada", "messages": [HELLO], "stream": True}
        with requests.post(f"{bridge.url}/v1/chat/completions", json=body, timeout=SOON, stream=True) as answer:
            assert any(b"word" in line for line in answer.iter_lines())
        until(lambda: letta.cancels == 1, 2.0)


def test_a_new_message_of_the_conversation_ends_the_lingering_run_through_any_service(
    shared: dict[str, str], tmp_path: Path
) -> None:
    with LettaServerStub(["Hello"], pause=60.0) as letta, ExitStack() as stack:
        settings = [environment(letta.url, tmp_path, **shared) for _ in range(2)]
        one, other = (stack.enter_context(Service(each, tmp_path / "log")) for each in settings)
        hang_up(one, 0.6, HELLO)
        letta.pause = 0.0
        asked = time.monotonic()
        assert ask(other, HELLO, GOODBYE) == "Hello"
        assert time.monotonic() - asked < 6.0
        assert letta.cancels == 1


def test_another_conversation_waits_until_no_repeat_is_waited_for(tmp_path: Path) -> None:
    with (
        LettaServerStub(["Hello"], pause=60.0) as letta,
        Service(environment(letta.url, tmp_path, BRIDGE_REPEAT_WAIT="3"), tmp_path / "log") as bridge,
    ):
        hang_up(bridge, 0.6, HELLO)
        letta.pause = 0.0
        asked = time.monotonic()
        assert ask(bridge, GOODBYE) == "Hello"
        assert 2.0 < time.monotonic() - asked < 10.0
        assert letta.cancels == 1


def test_without_a_wait_for_repeats_a_run_is_cancelled_at_once(tmp_path: Path) -> None:
    with (
        LettaServerStub(["Hello"], pause=60.0) as letta,
        Service(environment(letta.url, tmp_path, BRIDGE_REPEAT_WAIT="0"), tmp_path / "log") as bridge,
    ):
        hang_up(bridge, 0.6, HELLO)
        until(lambda: letta.cancels == 1, 2.0)


def test_a_turn_that_waits_for_its_agent_is_answered_to_the_repeat_and_not_run_without(
    letta: LettaServerStub, tmp_path: Path
) -> None:
    with Service(environment(letta.url, tmp_path), tmp_path / "log", PROMPT) as bridge:
        first = BackgroundRequest(bridge.url, {"model": "Ada", "messages": [HELLO], "stream": True})
        assert first.has_received()
        hang_up(bridge, 0.3, {"role": "user", "content": "Never mind"})
        for _ in range(2):
            hang_up(bridge, 0.5, GOODBYE)
        assert runs(letta) == 1
        assert ask(bridge, GOODBYE) == "Hello"
        first.wait_for_end()
        assert (runs(letta), letta.cancels) == (2, 0)


def test_the_end_of_the_service_does_not_wait_for_a_run_without_a_client(tmp_path: Path) -> None:
    with (
        LettaServerStub(["Hello"], pause=60.0) as letta,
        Service(environment(letta.url, tmp_path), tmp_path / "log") as bridge,
    ):
        hang_up(bridge, 0.6, HELLO)
        until(lambda: "client_gone" in (tmp_path / "log").read_text())
        began = time.monotonic()
        bridge.stop()
        assert time.monotonic() - began < 5.0
