"""Measures requests with many tools: with the tool search, and with all tools given to the agent where that works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from bench.client_requests import Json, many_tools
from bench.processes import MockProcess, bridge, bridge_port, mock, send, url
from bench.samples import BRIDGE, Samples
from bench.tools import Client, timed

SIZES = (50, 500, 2_000, 5_000)
# The most tools that an agent can be given.
MOST_GIVEN = 512
REPEATS = 5


def measure(samples: Samples, folder: Path) -> None:
    for above, words in (("30", "search"), ("0", "all given")):
        with mock(folder) as letta:
            ids = letta.control(agents=[f"offers-{size}" for size in SIZES])["ids"]
            with bridge(url(letta.port), folder, WEB_CONCURRENCY="1", BRIDGE_TOOL_SEARCH=above) as service:
                for size in SIZES:
                    if above != "0" or size <= MOST_GIVEN:
                        agent = f"offers-{size}"
                        figures = _figures(letta, bridge_port(service), agent, ids[agent], size)
                        named = {f"{name}, {words}": figure for name, figure in figures.items()}
                        samples.add(f"{size:,} tools offered", BRIDGE, named)


def _figures(letta: MockProcess, port: int, agent: str, agent_id: str, size: int) -> Mapping[str, float]:
    """Returns calls to Letta, times, and the bytes of the tools that the agent's model is shown."""
    client, tools = Client(port, agent), many_tools(size, f"offered{size}")
    client.say("!bench say 1", [])
    first_calls, first_seconds = timed(letta, lambda: client.say("!bench say 1", tools))
    unchanged = [timed(letta, lambda: client.say("!bench say 1", tools)) for _ in range(REPEATS)]
    figures = {
        "calls of the first turn": first_calls,
        "ms of the first turn": first_seconds * 1000,
        "calls of a turn": max(calls for calls, _ in unchanged),
        "ms of a turn": median(seconds for _, seconds in unchanged) * 1000,
        "kB shown to the model": _shown_bytes(letta, agent_id) / 1000,
    }
    if _has_search(letta, agent_id):
        calls, _ = timed(letta, lambda: client.say("!bench call search_tools", tools))
        figures["calls of a look-up"] = calls - figures["calls of a turn"]
    return figures


def _shown_bytes(letta: MockProcess, agent_id: str) -> int:
    return sum(len(json.dumps(tool["json_schema"])) for tool in _tools_of(letta, agent_id))


def _has_search(letta: MockProcess, agent_id: str) -> bool:
    return any(tool["name"] == "search_tools" for tool in _tools_of(letta, agent_id))


def _tools_of(letta: MockProcess, agent_id: str) -> list[Json]:
    _, body = send(letta.port, "GET", f"/v1/agents/{agent_id}")
    found: list[Json] = json.loads(body)["tools"]
    return found
