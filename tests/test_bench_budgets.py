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
from redis.connection import AbstractConnection

from app import create_app
from bench.client_requests import CODING_TOOLS, chat, many_tools, transcript
from bench.mock.letta import MockLetta
from bench.mock.wire import MockConnection
from bridge import fingerprints
from bridge.config import read_settings
from bridge.dialects.chat_completions import request
from bridge.dialects.openai import known_tools
from bridge.dialects.openai import tools as openai_tools
from bridge.letta import rows
from bridge.letta.client import LettaServer
from bridge.letta.connection import Connection
from bridge.letta.kept_connection import KeptConnection
from bridge.store.heartbeat import Heartbeat
from bridge.stubs import cache
from bridge.sync import toolset
from bridge.web import json_body
from testbed.redis import Redis
from tests.waiting import SOON

PLAIN = {"GET /v1/agents/{id}": 1, "POST /v1/agents/{id}/messages/stream": 1}
ANSWER = "!bench say 1"
# The functions that read the tools of a request.
LOOKS_INTO_TOOLS = (
    (openai_tools, "_parse_tool"),
    (known_tools, "canonical_json"),
    (cache, "_schema_key"),
    (cache, "check_schema"),
    (cache, "is_usual"),
    (cache, "make_stub"),
    (toolset, "plan_toolset"),
)


@dataclass
class Bench:
    """The bridge with a mock Letta over HTTP, and a client that never sends the same text twice."""

    letta: MockLetta
    url: str
    data: Path
    connections: Sequence[MockConnection]
    redis_url: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        environment = {"LETTA_BASE_URL": self.url, "BRIDGE_ALLOW_ANONYMOUS": "1", "BRIDGE_DATA_DIR": str(self.data)}
        environment |= {"REDIS_URL": self.redis_url} if self.redis_url else {}
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


def count_calls(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> list[str]:
    """Returns a list that grows with each call of a function."""
    calls: list[str] = []
    function = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *args, **named: (calls.append(name), function(*args, **named))[1])
    return calls


@pytest.mark.parametrize("tools", [0, 1, 15, 64, 512])
def test_an_unchanged_toolset_costs_no_call(bench: Bench, tools: int) -> None:
    assert bench.calls(many_tools(tools, "tool")) == PLAIN


def test_turns_one_after_the_other_use_one_connection(bench: Bench) -> None:
    bench.turn()
    before = len(bench.connections)
    for number in range(4):
        bench.turn(stream=number % 2 == 1)
    assert len(bench.connections) == before


@pytest.fixture
def quiet_heart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the heartbeat beat at its start only. A turn that begins during a beat asks the store twice more."""
    monkeypatch.setattr(Heartbeat, "beat_soon", lambda heart: None)


@pytest.mark.usefixtures("quiet_heart")
def test_a_turn_reads_and_writes_little_in_the_store(bench: Bench) -> None:
    """Counted in SQL statements of the threads of request and turn."""
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
    assert len(statements) <= 17, statements
    is_transaction = ("begin", "replace into texts select", "insert into texts")
    assert sum(one.startswith(is_transaction) for one in statements) <= 4, statements


@pytest.mark.servers
@pytest.mark.usefixtures("quiet_heart")
def test_a_turn_makes_six_round_trips_to_redis(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in what the threads of request and turn send. A pipeline is sent at once."""
    sent: list[Any] = []
    send = AbstractConnection.send_packed_command

    def count(connection: AbstractConnection, command: Any, check_health: bool = True) -> None:
        if threading.current_thread().name in {"MainThread", "turn"}:
            sent.append(command)
        send(connection, command, check_health)

    with Redis() as redis:
        shared = replace(bench, redis_url=redis.url)
        for _ in range(3):
            shared.turn()
        monkeypatch.setattr(AbstractConnection, "send_packed_command", count)
        shared.turn()
        monkeypatch.undo()
        shared.connection.close()
    assert 0 < len(sent) <= 6, sent


def test_a_turn_starts_no_thread_if_another_one_has_ended(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.turn()
    started: list[str] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (started.append(thread.name), start(thread)))
    bench.turn()
    assert started == []


def test_a_call_to_letta_is_written_once_and_read_in_few_pieces(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write and read is a system call, at which other threads take the interpreter."""
    bench.turn()
    writes, reads = (count_calls(monkeypatch, KeptConnection, name) for name in ("send", "receive"))
    bench.turn()
    assert len(writes) == 2
    assert len(reads) <= 6


def test_of_a_body_with_unchanged_tools_only_the_rest_is_parsed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.turn()
    parsed: list[bytes] = []
    parse = json_body._parse_carefully
    monkeypatch.setattr(json_body, "_parse_carefully", lambda text: (parsed.append(text), parse(text))[1])
    bench.turn()
    assert [len(text) < 200 for text in parsed] == [True]


def test_an_unchanged_tool_of_an_agent_is_not_parsed_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):  # the second turn reads the tools that the first has attached
        bench.turn()
    parsed = count_calls(monkeypatch, rows, "tool_from_row")
    bench.turn()
    assert not parsed
    bench.turn([*CODING_TOOLS, *many_tools(1, "more")])
    assert parsed


@pytest.mark.parametrize("messages", [1, 20, 2_000])
def test_a_long_transcript_costs_no_additional_call(bench: Bench, messages: int) -> None:
    assert bench.calls(messages=messages) == PLAIN


@pytest.mark.parametrize(("messages", "new"), [(1, 1), (20, 1), (200, 1)])
def test_only_new_messages_are_read_and_digested(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, messages: int, new: int
) -> None:
    bench.turn(messages=messages)
    digested = count_calls(monkeypatch, fingerprints, "_compute_digests")
    read = count_calls(monkeypatch, request, "_parse_message")
    bench.turn(messages=messages)
    assert (len(read), len(digested)) == (new, new)


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


@pytest.mark.parametrize("tools", [15, 512])
def test_nobody_looks_into_an_unchanged_list_of_tools(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tools: int
) -> None:
    sent = many_tools(tools, "tool")
    for _ in range(3):
        bench.turn(sent)
    looked = [count_calls(monkeypatch, place, name) for place, name in LOOKS_INTO_TOOLS]
    bench.turn(sent)
    assert not any(looked)


def test_many_tools_cost_the_stubs_that_the_agent_gets_and_then_nothing(bench: Bench) -> None:
    bench.turn()
    bench.letta.calls.clear()
    many = many_tools(2_000, "many")
    bench.turn(many)
    extra = {"GET /v1/tools/": 1, "PUT /v1/tools/": 18, "GET /v1/agents/{id}": 2, "PATCH /v1/agents/{id}": 1}
    assert bench.letta.calls == {**PLAIN, **extra}
    assert bench.calls(many) == PLAIN
    changed = {**many[1_000], "function": {**many[1_000]["function"], "description": "Changed."}}
    bench.letta.calls.clear()
    bench.turn([*many[:1_000], changed, *many[1_001:], *many_tools(50, "more")])
    assert bench.letta.calls == PLAIN, "the agent does not have what changed"


def test_a_search_costs_three_calls(bench: Bench) -> None:
    many = many_tools(2_000, "many")
    bench.turn(many)
    bench.letta.calls.clear()
    bench.turn(many, script="!bench call search_tools")
    look_up = {"GET /v1/agents/{id}": 2, "GET /v1/agents/{id}/messages": 1, "POST /v1/agents/{id}/messages/stream": 2}
    assert bench.letta.calls == look_up


def test_nobody_looks_into_thousands_of_unchanged_tools(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = many_tools(2_000, "tool")
    for _ in range(3):
        bench.turn(sent)
    looked = [count_calls(monkeypatch, place, name) for place, name in LOOKS_INTO_TOOLS]
    bench.turn(sent)
    assert not any(looked)
