"""Measures what a turn costs when the transcript, the tools or the server grow."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.client_requests import CODING_TOOLS, Json, chat, many_tools, transcript
from bench.errors import BenchFailed
from bench.processes import MockProcess, send

TURNS = 12
MESSAGE_SIZE = 5_000
TRANSCRIPTS = (2, 20, 200, 2_000)
STUBS = (15, 500, 5_000)
AGENTS = (1, 100, 1_000)
TOOLS = (15, 64, 256, 512)

Measured = dict[str, float]


class Growth:
    """Measures turns with one agent. Each method returns the figures by size."""

    def __init__(self, letta: MockProcess, port: int, agent: str) -> None:
        self._letta = letta
        self._port = port
        self._agent = agent
        self._numbers = itertools.count(1)

    def of_transcripts(self) -> dict[int, Measured]:
        def body(size: int) -> Json:
            return chat(self._agent, "", messages=transcript(size, self._text(), MESSAGE_SIZE))

        return {size: self._measured(lambda size=size: body(size)) for size in TRANSCRIPTS}  # type: ignore[misc]

    def of_tools(self) -> dict[int, Measured]:
        def body(size: int) -> Json:
            return chat(self._agent, self._text(), tools=many_tools(size, "grown"))

        return {size: self._measured(lambda size=size: body(size)) for size in TOOLS}  # type: ignore[misc]

    def of_stubs(self) -> dict[int, Measured]:
        """Measures with stubs of the bridge on the server that the agent does not have."""
        found, existing = {}, 0
        for size in STUBS:
            rows = [_tool_row(f"grown_{number}") for number in range(existing, size)]
            for start in range(0, len(rows), 500):
                self._letta.control(tools=rows[start : start + 500])
            existing = size
            found[size] = self._measured(lambda: chat(self._agent, self._text()))
        return found

    def of_agents(self) -> dict[int, Measured]:
        found, existing = {}, 1
        for size in AGENTS:
            self._letta.control(agents=[f"grown-{number}" for number in range(existing, size)])
            existing = size
            found[size] = self._measured(lambda: chat(self._agent, self._text()))
        return found

    def _text(self) -> str:
        return f"Grown {next(self._numbers)}.\n!bench say 1"

    def _measured(self, body: Callable[[], Json]) -> Measured:
        """Measures one turn, after both workers have learned the toolset."""
        for _ in range(8):
            self._turn(body())
        self._letta.new_calls()
        times = [self._turn(body()) for _ in range(TURNS)]
        return {"ms": median(times) * 1000, "calls": sum(self._letta.new_calls().values()) / TURNS}

    def _turn(self, body: Json) -> float:
        """Returns the seconds of a turn, without those for writing the request's JSON."""
        written = json.dumps(body).encode()
        started = time.monotonic()
        status, answer = send(self._port, "POST", "/v1/chat/completions", written)
        if status != 200:
            raise BenchFailed(f"a turn failed with {status}: {answer.decode(errors='replace')[:500]}")
        return time.monotonic() - started


def _tool_row(name: str) -> dict[str, Any]:
    function = CODING_TOOLS[0]["function"]
    schema = {"name": name, "description": function["description"], "parameters": function["parameters"]}
    digest = f"letta-tool-bridge:digest={name}"
    return {"json_schema": schema, "tags": ["letta-tool-bridge", digest], "source_code": f"def {name}():\n    ...\n"}
