"""Lanes against a real Letta with a scripted model: the bridge, and the same calls made by hand."""

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

from bench.asked import CODING_TOOLS
from bench.parties import LETTA, bridge, bridge_port
from bench.tools import Client
from testbed.agents import create_agent
from testbed.model import ScriptedModel
from testbed.server import running

TURNS = 12
PAUSE = 0.1
_CALL = '!call read_file {"path": "notes.txt"}\n!next\n!answer'


@dataclass(frozen=True, slots=True)
class ByHand:
    """Calls to Letta over one connection, as somebody makes them who has no bridge."""

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
        except http.client.RemoteDisconnected:  # Letta keeps no connection that is idle for five seconds
            self.connection.request(method, path, data, headers)
            answer = self.connection.getresponse()
        return answer.read()


def lanes(folder: Path, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """Times of whole turns, in milliseconds. Both ways make the same calls, in turns, on one agent."""
    with _started(folder, say) as (client, hand):
        client.say("Hello", CODING_TOOLS)
        plain = _compared(lambda: client.say("Hello", CODING_TOOLS), lambda: _plain(hand))
        whole = _compared(lambda: _through_bridge(client), lambda: _call(hand))
    return {"plain turn": plain, "call and result": whole}


@contextmanager
def _started(folder: Path, say: Callable[[str], None]) -> Iterator[tuple[Client, ByHand]]:
    with ScriptedModel() as model, running(LETTA, model_url=model.url, progress=say) as server:
        made = create_agent(server.base_url, name="bench-real", agent_type="letta_v1_agent", model_url=model.url)
        connection = http.client.HTTPConnection(server.base_url.removeprefix("http://"), timeout=120)
        with bridge(server.base_url, folder) as service:
            yield Client(bridge_port(service), "bench-real"), ByHand(connection, made["id"])
        connection.close()


def _compared(through_bridge: Callable[[], Any], by_hand: Callable[[], Any]) -> dict[str, float]:
    """One of each in turns, in random order: Letta goes on working for a moment after it has answered."""
    ours, theirs = list[float](), list[float]()
    for _ in range(TURNS):
        pair = [(ours, through_bridge), (theirs, by_hand)]
        random.shuffle(pair)
        for times, action in pair:
            time.sleep(PAUSE)
            times.append(_timed(action))
    by_hand_ms, bridge_ms = median(theirs) * 1000, median(ours) * 1000
    return {"by hand ms": by_hand_ms, "bridge ms": bridge_ms, "added ms": bridge_ms - by_hand_ms}


def _timed(action: Callable[[], Any]) -> float:
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def _plain(hand: ByHand) -> None:
    hand.state()
    hand.message({"role": "user", "content": "Hello"})


def _call(hand: ByHand) -> None:
    hand.state()
    hand.message({"role": "user", "content": f"What is in it?\n{_CALL}"})
    last = hand.state()["message_ids"][-1]
    call = next(row["tool_call"] for row in hand.newest() if row["id"] == last and row.get("tool_call"))
    returned = {"type": "tool", "tool_call_id": call["tool_call_id"], "tool_return": "Buy milk.", "status": "success"}
    hand.message({"type": "approval", "approvals": [returned]})


def _through_bridge(client: Client) -> None:
    message = client.say(f"What is in it?\n{_CALL}", CODING_TOOLS)
    client.give(message["tool_calls"][0], "Buy milk.", CODING_TOOLS)
