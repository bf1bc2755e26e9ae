"""Lanes of growth: what a turn costs as what is around it grows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from statistics import median
from typing import Any

from bench.asked import CODING_TOOLS, Json, chat, many_tools, transcript
from bench.errors import BenchFailed
from bench.machine import cpu_seconds
from bench.parties import Mock, called

TURNS = 12
MESSAGE_SIZE = 5_000
TRANSCRIPTS = (2, 20, 200, 2_000)
STUBS = (15, 500, 5_000)
AGENTS = (1, 100, 1_000)
TOOLS = (15, 64, 256, 512)

Measured = dict[str, float]


class Growth:
    def __init__(self, letta: Mock, port: int, pid: int) -> None:
        self._letta = letta
        self._port = port
        self._pid = pid
        self._numbers = count(1)

    def of_transcripts(self, agent: str) -> dict[int, Measured]:
        def body(size: int) -> Json:
            return chat(agent, "", messages=transcript(size, self._text(), MESSAGE_SIZE))

        return {size: self._measured(lambda size=size: body(size)) for size in TRANSCRIPTS}  # type: ignore[misc]

    def of_tools(self, agent: str) -> dict[int, Measured]:
        def body(size: int) -> Json:
            return chat(agent, self._text(), tools=many_tools(size, "grown"))

        return {size: self._measured(lambda size=size: body(size)) for size in TOOLS}  # type: ignore[misc]

    def of_stubs(self, agent: str) -> dict[int, Measured]:
        """Tools of the bridge that stand on the server, whatever the agent has."""
        found, there = {}, 0
        for size in STUBS:
            rows = [_tool_row(f"grown_{number}") for number in range(there, size)]
            for start in range(0, len(rows), 500):
                self._letta.tell(tools=rows[start : start + 500])
            there = size
            found[size] = self._measured(lambda: chat(agent, self._text()))
        return found

    def of_agents(self, agent: str) -> dict[int, Measured]:
        found, there = {}, 1
        for size in AGENTS:
            self._letta.tell(agents=[f"grown-{number}" for number in range(there, size)])
            there = size
            found[size] = self._measured(lambda: chat(agent, self._text()))
        return found

    def _text(self) -> str:
        return f"Grown {next(self._numbers)}.\n!bench say 1"

    def _measured(self, body: Callable[[], Json]) -> Measured:
        """Of one turn, once both workers know the toolset."""
        for _ in range(8):
            self._turn(body())
        self._letta.counted()
        before = cpu_seconds(self._pid)
        times = []
        size = 0
        for _ in range(TURNS):
            asked = body()
            size = len(json.dumps(asked))
            times.append(self._turn(asked))
        calls = self._letta.counted()
        spent = cpu_seconds(self._pid) - before
        return {
            "ms": median(times) * 1000,
            "CPU ms": spent / TURNS * 1000,
            "MB": size / 1e6,
            "calls": sum(calls.values()) / TURNS,
        }

    def _turn(self, asked: Json) -> float:
        begun = time.monotonic()
        status, answer = called(self._port, "POST", "/v1/chat/completions", asked)
        if status != 200:
            raise BenchFailed(f"a turn failed with {status}: {answer.decode(errors='replace')[:500]}")
        return time.monotonic() - begun


def grows(measured: dict[int, Measured], what: str) -> float:
    """How many times the smallest the largest is."""
    values = [one[what] for one in measured.values()]
    return values[-1] / max(values[0], 0.001)


def _tool_row(name: str) -> dict[str, Any]:
    function = CODING_TOOLS[0]["function"]
    schema = {"name": name, "description": function["description"], "parameters": function["parameters"]}
    digest = f"letta-tool-bridge:digest={name}"
    return {"json_schema": schema, "tags": ["letta-tool-bridge", digest], "source_code": f"def {name}():\n    ...\n"}
