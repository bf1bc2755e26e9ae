"""Compares turns through the bridge with the same calls sent directly to a real Letta with a scripted model."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.client_requests import CODING_TOOLS
from bench.processes import LETTA, bridge, bridge_port
from bench.tools import Client
from testbed.agents import create_agent
from testbed.model import ScriptedModel
from testbed.server import running

TURNS = 12
PAUSE = 0.1
_CALL = '!call read_file {"path": "notes.txt"}\n!next\n!answer'


@dataclass(frozen=True, slots=True)
class DirectClient:
    """Sends the calls of a turn directly to Letta over one connection."""

    connection: http.client.HTTPConnection
    agent_id: str

    def state(self) -> Any:
        return json.loads(self._sent("GET", f"/v1/agents/{self.agent_id}?include_relationships=tools"))

    def message(self, message: dict[str, Any]) -> list[Any]:
        body = {"messages": [message], "stream_tokens": False}
        answer = self._sent("POST", f"/v1/agents/{self.agent_id}/messages/stream", body)
        lines = [line[6:] for line in answer.decode().splitlines() if line.startswith("data: {")]
        return [json.loads(line) for line in lines]

    def newest(self) -> Any:
        return json.loads(self._sent("GET", f"/v1/agents/{self.agent_id}/messages?limit=20"))

    def _sent(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"}
        try:
            self.connection.request(method, path, data, headers)
            answer = self.connection.getresponse()
        except http.client.RemoteDisconnected:  # Letta closes connections after five idle seconds
            self.connection.request(method, path, data, headers)
            answer = self.connection.getresponse()
        return answer.read()


def measure(folder: Path, say: Callable[[str], None]) -> dict[str, tuple[float, float]]:
    """Returns the milliseconds of whole turns, (direct, bridge). Both make the same calls to the same agent."""
    with _started(folder, say) as (client, direct):
        client.say("Hello", CODING_TOOLS)
        plain = _compared(lambda: client.say("Hello", CODING_TOOLS), lambda: _plain_turn(direct))
        whole = _compared(lambda: _call_through_bridge(client), lambda: _direct_call(direct))
    return {"plain turn": plain, "call and result": whole}


@contextmanager
def _started(folder: Path, say: Callable[[str], None]) -> Iterator[tuple[Client, DirectClient]]:
    with ScriptedModel() as model, running(LETTA, model_url=model.url, progress=say) as server:
        made = create_agent(server.base_url, name="bench-real", agent_type="letta_v1_agent", model_url=model.url)
        connection = http.client.HTTPConnection(server.base_url.removeprefix("http://"), timeout=120)
        with bridge(server.base_url, folder) as service:
            yield Client(bridge_port(service), "bench-real"), DirectClient(connection, made["id"])
        connection.close()


def _compared(through_bridge: Callable[[], Any], directly: Callable[[], Any]) -> tuple[float, float]:
    """Times pairs in random order, as Letta works on for a moment after it has answered."""
    ours, theirs = list[float](), list[float]()
    for _ in range(TURNS):
        pair = [(ours, through_bridge), (theirs, directly)]
        random.shuffle(pair)
        for times, action in pair:
            time.sleep(PAUSE)
            times.append(_timed(action))
    return median(theirs) * 1000, median(ours) * 1000


def _timed(action: Callable[[], Any]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


def _plain_turn(direct: DirectClient) -> None:
    direct.state()
    direct.message({"role": "user", "content": "Hello"})


def _direct_call(direct: DirectClient) -> None:
    direct.state()
    direct.message({"role": "user", "content": f"What is in it?\n{_CALL}"})
    last = direct.state()["message_ids"][-1]
    call = next(row["tool_call"] for row in direct.newest() if row["id"] == last and row.get("tool_call"))
    returned = {"type": "tool", "tool_call_id": call["tool_call_id"], "tool_return": "Buy milk.", "status": "success"}
    direct.message({"type": "approval", "approvals": [returned]})


def _call_through_bridge(client: Client) -> None:
    message = client.say(f"What is in it?\n{_CALL}", CODING_TOOLS)
    client.give(message["tool_calls"][0], "Buy milk.", CODING_TOOLS)
