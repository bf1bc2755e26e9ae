"""Lanes of tools: what a change of the toolset costs, and a whole call with its result, by each method."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from bench.asked import CODING_TOOLS, Json, chat, many_tools
from bench.errors import BenchFailed
from bench.parties import Mock, called

DELAY = 0.02
REPEATS = 3
# By which agent each method is played. The last two are only played because a setting says so.
METHODS = {
    "native": "letta_v1_agent",
    "approval": "letta_v1_agent",
    "rewrite": "memgpt_v2_agent",
    "relay": "memgpt_v2_agent",
    "message": "memgpt_v2_agent",
}
# Of the line: it has a place for each of these methods.
METHODS_LETTA = "0.16.6"


class Client:
    """One that keeps a transcript. Each of its requests is another turn."""

    def __init__(self, port: int, agent: str) -> None:
        self._port = port
        self._agent = agent
        self._asked = 0
        self.messages: list[Json] = []

    def say(self, text: str, tools: Sequence[Json]) -> Json:
        self._asked += 1
        self.messages = [{"role": "user", "content": f"Turn {self._asked} of {time.monotonic_ns()}.\n{text}"}]
        return self._ask(tools)

    def give(self, call: Json, text: str, tools: Sequence[Json]) -> Json:
        """The result of a call."""
        result = {"role": "tool", "tool_call_id": call["id"], "content": text}
        self.messages = [*self.messages, {"role": "assistant", "content": None, "tool_calls": [call]}, result]
        return self._ask(tools)

    def _ask(self, tools: Sequence[Json]) -> Json:
        body = chat(self._agent, "", tools=tools, messages=self.messages)
        status, answer = called(self._port, "POST", "/v1/chat/completions", body)
        if status != 200:
            raise BenchFailed(f"a turn failed with {status}: {answer.decode(errors='replace')[:500]}")
        message: Json = json.loads(answer)["choices"][0]["message"]
        return message


def timed(letta: Mock, turn: Callable[[], Any]) -> tuple[int, float]:
    """(calls to Letta, seconds) of a turn."""
    letta.counted()
    begun = time.monotonic()
    turn()
    seconds = time.monotonic() - begun
    return sum(letta.counted().values()), seconds


def changes(letta: Mock, port: int, agent: str) -> dict[str, dict[str, float]]:
    """Each change of fifty tools of a client, by a bridge of one worker that has served the agent before."""
    client = Client(port, agent)
    client.say("!bench say 1", [])
    letta.tell(delay=DELAY)
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
    letta.tell(delay=0)
    return {name: _middle(values) for name, values in found.items()}


def whole_calls(letta: Mock, port: int, agents: dict[str, str]) -> dict[str, dict[str, float]]:
    """A turn that ends in a call, and the turn that brings its result."""
    letta.tell(delay=DELAY)
    found: dict[str, list[tuple[int, float]]] = {}
    for method, agent in agents.items():
        client = Client(port, agent)
        client.say("!bench say 1", CODING_TOOLS)
        for _ in range(REPEATS):
            found.setdefault(method, []).append(timed(letta, lambda client=client: _call_and_result(client)))  # type: ignore[misc]
    letta.tell(delay=0)
    return {method: _middle(values) for method, values in found.items()}


def _call_and_result(client: Client) -> None:
    message = client.say("!bench call read_file", CODING_TOOLS)
    if not message.get("tool_calls"):
        raise BenchFailed(f"the call did not reach the client: {message!r:.300}")
    client.give(message["tool_calls"][0], "Buy milk.", CODING_TOOLS)


def _middle(values: Sequence[tuple[int, float]]) -> dict[str, float]:
    times = [seconds * 1000 for _, seconds in values]
    return {"calls": max(calls for calls, _ in values), "ms": median(times)}
