"""Tests of the budgets that are counts: a turn costs the same calls to Letta however large the transcript, the toolset
and the server are, and no delta of a stream is lost. They use the benchmark's mock Letta.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from app import create_app
from bench.client_requests import CODING_TOOLS, chat, many_tools, transcript
from bench.mock.letta import MockLetta
from bench.mock.wire import MockConnection
from bridge.config import read_settings
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from tests.waiting import SOON

PLAIN = {"GET /v1/agents/{id}": 1, "POST /v1/agents/{id}/messages/stream": 1}
ANSWER = "!bench say 1"


@dataclass
class Bench:
    """The bridge with a mock Letta over HTTP, and a client that never sends the same text twice."""

    letta: MockLetta
    url: str
    data: Path
    connections: Sequence[MockConnection]
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        environment = {"LETTA_BASE_URL": self.url, "BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_DATA_DIR": str(self.data)}
        settings = replace(read_settings(environment), sweep_interval=0)
        self.connection = Connection(settings)
        self.client = create_app(settings, LettaServer(settings, self.connection)).test_client()

    def turn(self, tools: Any = CODING_TOOLS, messages: int = 1, script: str = ANSWER, **fields: Any) -> str:
        sent = transcript(messages, f"{next(self.numbers)}\n{script}", 50)
        answer = self.client.post("/v1/chat/completions", json=chat("bench", "", tools=tools, messages=sent, **fields))
        assert answer.status_code == 200, answer.text
        return answer.text

    def calls(self, tools: Any = CODING_TOOLS, **fields: Any) -> dict[str, int]:
        """Returns the calls to Letta of one turn, by kind, when the agent has the client's tools already."""
        self.turn(tools, **fields)
        self.letta.calls.clear()
        self.turn(tools, **fields)
        return dict(self.letta.calls)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    letta = MockLetta("0.16.1")
    letta.state.make_agents(["bench"], "letta_v1_agent")
    ready = threading.Event()
    ports: list[int] = []
    loop = asyncio.new_event_loop()

    connections: list[MockConnection] = []

    def connection() -> MockConnection:
        connections.append(MockConnection(letta.serve))
        return connections[-1]

    async def serve() -> None:
        server = await loop.create_server(connection, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        async with server:
            await stopped.wait()
        for one in connections:
            one.close()
        await asyncio.sleep(0)

    stopped = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(SOON)
    made = Bench(letta, f"http://127.0.0.1:{ports[0]}", tmp_path, connections)
    yield made
    made.connection.close()
    loop.call_soon_threadsafe(stopped.set)
    thread.join(SOON)
    loop.close()


@pytest.mark.parametrize("tools", [0, 1, 15, 64, 512])
def test_an_unchanged_toolset_costs_no_call(bench: Bench, tools: int) -> None:
    assert bench.calls(many_tools(tools, "tool")) == PLAIN


def test_turns_one_after_the_other_use_one_connection(bench: Bench) -> None:
    bench.turn()
    before = len(bench.connections)
    for number in range(4):
        bench.turn(stream=number % 2 == 1)
    assert len(bench.connections) == before


def test_a_turn_reads_and_writes_little_in_the_store(bench: Bench) -> None:
    """Counted in SQL statements of the threads of request and turn. With Redis, each read and each transaction is one
    round trip.
    """
    for _ in range(2):
        bench.turn()
    statements: list[str] = []

    def note(statement: str) -> None:
        if threading.current_thread().name in {"MainThread", "turn"}:
            statements.append(statement)

    store = bench.client.application.extensions["parts"].store
    with store._connection() as database:
        database.set_trace_callback(note)
    bench.turn()
    database.set_trace_callback(None)
    assert len(statements) <= 26, statements
    assert sum(one.startswith(("begin", "insert into texts", "delete from texts")) for one in statements) <= 6


def test_a_turn_starts_one_thread(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.turn()
    started: list[str] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread)))
    bench.turn()
    assert started == ["turn"]


@pytest.mark.parametrize("messages", [1, 20, 2_000])
def test_a_long_transcript_costs_no_additional_call(bench: Bench, messages: int) -> None:
    assert bench.calls(messages=messages) == PLAIN


def test_other_agents_and_stubs_on_the_server_cost_no_additional_call(bench: Bench) -> None:
    bench.letta.state.make_agents([f"other-{number}" for number in range(1_000)], "letta_v1_agent")
    function = CODING_TOOLS[0]["function"]
    for number in range(5_000):
        schema = {"name": f"stub_{number}", "parameters": function["parameters"]}
        tags = ["letta-tool-bridge", f"letta-tool-bridge:digest={number:064x}"]
        bench.letta.state.put_tool({"json_schema": schema, "tags": tags, "source_code": "..."})
    assert bench.calls() == PLAIN
    one_more = [*CODING_TOOLS, *many_tools(1, "more")]
    bench.letta.calls.clear()
    bench.turn(one_more)
    extra = {"GET /v1/tools/": 1, "PUT /v1/tools/": 1, "GET /v1/agents/{id}": 2, "PATCH /v1/agents/{id}": 1}
    assert bench.letta.calls == {**PLAIN, **extra}


def test_new_tools_cost_one_call_each_and_four_more(bench: Bench) -> None:
    bench.turn()
    bench.letta.calls.clear()
    bench.turn(many_tools(50, "new"))
    extra = {"GET /v1/tools/": 1, "PUT /v1/tools/": 50, "GET /v1/agents/{id}": 2, "PATCH /v1/agents/{id}": 1}
    assert bench.letta.calls == {**PLAIN, **extra}


@pytest.mark.parametrize("script", ["!bench say 1000", "!bench say 64 1"], ids=["unpaced", "paced"])
def test_every_delta_of_a_stream_arrives_in_its_own_frame(bench: Bench, script: str) -> None:
    deltas = int(script.split()[2])
    frames = bench.turn(script=script, stream=True).split("\n\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in frames if line.startswith("data: {")]
    texts = [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]]
    assert [int(text.split()[0]) for text in texts if text] == list(range(deltas))
    assert frames[-2] == "data: [DONE]"


def test_a_call_and_its_result_cost_five_calls(bench: Bench) -> None:
    bench.turn()
    bench.letta.calls.clear()
    call = json.loads(bench.turn(script="!bench call read_file"))["choices"][0]["message"]["tool_calls"][0]
    messages = [
        {"role": "user", "content": "2\n!bench call read_file"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "Buy milk."},
    ]
    answer = bench.client.post("/v1/chat/completions", json=chat("bench", "", messages=messages))
    assert answer.status_code == 200, answer.text
    assert sum(bench.letta.calls.values()) == 5
