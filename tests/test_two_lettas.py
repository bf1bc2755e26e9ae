"""Bridges in front of two Letta servers may share one store. Each answers from its own Letta alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from app import create_app
from bridge.config import read_settings
from bridge.letta.gateway import Tool
from bridge.turn import Stub
from testbed.redis import Redis
from tests.actors import Chat
from tests.fakes import FakeGateway
from tests.stores import KINDS
from tests.waiting import SOON

BODY = {"model": "Ada", "messages": [{"role": "user", "content": "Hello"}], "stream": True}


@pytest.fixture(params=KINDS)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yields the settings of bridges that share a store: a folder, or a Redis."""
    common = {"BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_DATA_DIR": str(tmp_path)}
    if request.param == "local":
        yield common
        return
    with Redis() as redis:
        yield {**common, "REDIS_URL": redis.url}


def tools(description: str) -> list[dict[str, Any]]:
    function = {"name": "read", "description": description, "parameters": {"type": "object", "properties": {}}}
    return [{"type": "function", "function": function}]


class Bridges:
    """Makes bridges in front of Lettas, and ends them."""

    def __init__(self, shared: dict[str, str]) -> None:
        self._shared = shared
        self.apps: list[Flask] = []

    def new_bridge(self, letta: FakeGateway, address: str = "http://letta.test:8283") -> Flask:
        self.apps.append(create_app(read_settings({**self._shared, "LETTA_BASE_URL": address}), letta))
        return self.apps[-1]


@pytest.fixture
def bridges(shared: dict[str, str]) -> Iterator[Bridges]:
    made = Bridges(shared)
    yield made
    for app in made.apps:
        app.extensions["parts"].recorder.stop()


def new_letta() -> FakeGateway:
    """A server with one agent, and with the tools of its own that each Letta makes."""
    letta = FakeGateway()
    letta.has_agent("Ada")
    letta.has_tool("send_message", "letta_core")
    return letta


def hang_up(app: Flask) -> None:
    """Sends the request, and leaves at the first bytes of its answer."""
    response = app.test_client().post("/v1/chat/completions", json=BODY, buffered=False)
    assert next(response.response)  # type: ignore[call-overload]
    response.close()


def test_an_answer_that_did_not_arrive_is_not_given_for_another_letta(bridges: Bridges) -> None:
    first, second = new_letta(), new_letta()
    hang_up(bridges.new_bridge(first))
    second.will_say("I am the other one.")
    reply = Chat(bridges.new_bridge(second).test_client()).ask("Hello", stream=True, usage=False)
    assert reply.text == "I am the other one."
    assert (len(first.prompts), len(second.prompts)) == (1, 1)


def test_a_key_of_a_request_is_another_one_on_another_letta(bridges: Bridges) -> None:
    first, second, key = new_letta(), new_letta(), {"Idempotency-Key": "order-1"}
    Chat(bridges.new_bridge(first).test_client()).ask("Hello", headers=key)
    other = Chat(bridges.new_bridge(second).test_client())
    assert other.ask("Goodbye", headers=key).text == "You said: Goodbye"
    assert other.ask("Goodbye", headers=key).text == "You said: Goodbye"
    assert (len(first.prompts), len(second.prompts)) == (1, 1)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "order-1"}])
def test_the_address_by_which_a_letta_is_called_makes_no_difference(bridges: Bridges, headers: dict[str, str]) -> None:
    letta = new_letta()
    first = bridges.new_bridge(letta, "http://localhost:8283").test_client()
    response = first.post("/v1/chat/completions", json=BODY, buffered=False, headers=headers)
    assert next(response.response)  # type: ignore[call-overload]
    response.close()
    second = Chat(bridges.new_bridge(letta, "http://127.0.0.1:8283/").test_client())
    assert second.ask("Hello", stream=True, usage=False, headers=headers).text == "You said: Hello"
    assert len(letta.prompts) == 1


def test_a_name_that_is_about_to_be_taken_on_one_letta_is_free_on_another(bridges: Bridges) -> None:
    first, second = new_letta(), new_letta()
    first.has_agent("Bob")
    one = bridges.new_bridge(first, "http://localhost:8283")
    of_the_same, of_another = bridges.new_bridge(first), bridges.new_bridge(second)
    put, begun, go_on = first.put_tool, threading.Event(), threading.Event()

    def slow(stub: Stub, tags: Sequence[str]) -> Tool:
        if stub.name == "read":
            begun.set()
            assert go_on.wait(SOON)
        return put(stub, tags)

    first.put_tool = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: Chat(one.test_client()).ask("Hello", tools=tools("One.")))
        assert begun.wait(SOON)
        Chat(of_the_same.test_client()).ask("Hello", model="Bob", tools=tools("Two."))
        Chat(of_another.test_client()).ask("Hello", tools=tools("Three."))
        go_on.set()
        asked.result(SOON)
    assert len({tool.name for tool in first.tools() if tool.name.startswith("read")}) == 2
    assert [tool.name for tool in second.tools()] == ["send_message", "read"]
    assert [sorted(prompt.tools) for prompt in second.prompts] == [["read"]]


def test_the_server_is_asked_once_for_its_identity_and_not_for_turns_without_new_tools(bridges: Bridges) -> None:
    letta = new_letta()
    chat = Chat(bridges.new_bridge(letta).test_client())
    chat.ask("Hello")
    assert letta.calls.count("tools_named") == 0
    for _ in range(2):
        chat.ask("Hello", tools=tools("One."))
    assert letta.calls.count("tools_named") == 2  # one for the identity, one for the name of the new tool
