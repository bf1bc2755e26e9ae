"""Measures changes of the toolset, and a call with its result for each method."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from bench.client_requests import CODING_TOOLS, Json, chat, many_tools
from bench.errors import BenchFailed
from bench.processes import MockProcess, send

DELAY = 0.02
REPEATS = 3
# The type of the agent for each method. The last two methods are used only because a setting says so.
METHODS = {
    "native": "letta_v1_agent",
    "approval": "letta_v1_agent",
    "rewrite": "memgpt_v2_agent",
    "relay": "memgpt_v2_agent",
    "message": "memgpt_v2_agent",
}
# All of these methods work with this version.
METHODS_LETTA = "0.16.6"


class Client:
    """A client with a transcript. Each of its requests is a new turn."""

    def __init__(self, port: int, agent: str) -> None:
        self._port = port
        self._agent = agent
        self._turns = 0
        self.messages: list[Json] = []

    def say(self, text: str, tools: Sequence[Json]) -> Json:
        self._turns += 1
        self.messages = [{"role": "user", "content": f"Turn {self._turns} of {time.monotonic_ns()}.\n{text}"}]
        return self._ask(tools)

    def give(self, call: Json, text: str, tools: Sequence[Json]) -> Json:
        """Sends the result of a call."""
        result = {"role": "tool", "tool_call_id": call["id"], "content": text}
        self.messages = [*self.messages, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
        return self._ask(tools)

    def _ask(self, tools: Sequence[Json]) -> Json:
        body = chat(self._agent, "", tools=tools, messages=self.messages)
        status, answer = send(self._port, "POST", "/v1/chat/completions", body)
        if status != 200:
            raise BenchFailed(f"a turn failed with {status}: {answer.decode(errors='replace')[:500]}")
        message: Json = json.loads(answer)["choices"][0]["message"]
        return message


def timed(letta: MockProcess, turn: Callable[[], Any]) -> tuple[int, float]:
    """Returns the (calls to Letta, seconds) of a turn."""
    letta.new_calls()
    started = time.monotonic()
    turn()
    seconds = time.monotonic() - started
    return sum(letta.new_calls().values()), seconds


def changes(letta: MockProcess, port: int, agent: str) -> dict[str, dict[str, float]]:
    """Measures changes of a client's fifty tools, with a bridge of one worker that has served the agent before."""
    client = Client(port, agent)
    client.say("!bench say 1", [])
    letta.control(delay=DELAY)
    found = {"without tools": [timed(letta, lambda: client.say("!bench say 1", []))]}
    for repeat in range(REPEATS):
        fifty, others = many_tools(50, f"one{repeat}"), many_tools(50, f"other{repeat}")
        steps = {
            "50 new tools": fifty,
            "unchanged": fifty,
            "1 new tool": [*fifty, *many_tools(1, f"more{repeat}")],
            "50 other tools": others,
        }
        for name, tools in steps.items():
            found.setdefault(name, []).append(timed(letta, lambda tools=tools: client.say("!bench say 1", tools)))  # type: ignore[misc]
    letta.control(delay=0)
    return {name: _medians(values) for name, values in found.items()}


def whole_calls(letta: MockProcess, port: int, agents: dict[str, str]) -> dict[str, dict[str, float]]:
    """Measures a turn that ends in a call, together with the turn that brings its result."""
    letta.control(delay=DELAY)
    found: dict[str, list[tuple[int, float]]] = {}
    for method, agent in agents.items():
        client = Client(port, agent)
        client.say("!bench say 1", CODING_TOOLS)
        for _ in range(REPEATS):
            found.setdefault(method, []).append(timed(letta, lambda client=client: _call_and_result(client)))  # type: ignore[misc]
    letta.control(delay=0)
    return {method: _medians(values) for method, values in found.items()}


def _call_and_result(client: Client) -> None:
    message = client.say("!bench call read_file", CODING_TOOLS)
    if not message.get("tool_calls"):
        raise BenchFailed(f"the call did not reach the client: {message!r:.300}")
    client.give(message["tool_calls"][0], "Buy milk.", CODING_TOOLS)


def _medians(values: Sequence[tuple[int, float]]) -> dict[str, float]:
    times = [seconds * 1000 for _, seconds in values]
    return {"calls": max(calls for calls, _ in values), "ms": median(times)}
