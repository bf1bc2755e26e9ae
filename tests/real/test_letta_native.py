"""The model of a letta_v1_agent is shown through the bridge what Letta shows it that has client tools of its own."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import requests

from testbed.versions import V1_AGENT
from tests.letta_checker import calls_of
from tests.real.talk import ANSWER, calling
from tests.real.world import World
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

AGENT_TYPE = V1_AGENT

IDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bcall_[0-9A-Za-z_-]+")
TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\"\n]*")
# Without its version, Letta takes a client for one that knows no streams at this path.
SDK = {"X-Stainless-Package-Version": "1.12.1"}


def client_tool(name: str, **properties: Json) -> Json:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": "A tool of the client.", "parameters": parameters}


# No other test has tools of these names: the server may have only one of each.
TOOLS = [client_tool("forecast", city={"type": "string", "description": "Which city"}), client_tool("sundial")]
CITIES = [calling("forecast", city=city) for city in ("Oslo", "Rome")]
QUESTION = "\n".join(["Weather?", *CITIES, "!next", calling("sundial"), ANSWER])
NOW, AGAIN = "And now?\n!say Later.", f"Again?\n{calling('sundial')}\n!next\n!say No."
CAFE = '12 degrees, "café" \U0001f600'
# What the client says: texts, and its answers to the calls of the reply before. They begin with the number of the call.
SAID: list[list[str | list[tuple[int, Json]]]] = [
    [QUESTION],
    [[(0, {"tool_return": CAFE, "status": "success"}), (1, {"tool_return": "No such city.", "status": "error"})]],
    [[(0, {"tool_return": "noon", "status": "success"})], NOW],
    [AGAIN],
    [[(0, {"type": "approval", "approve": False, "reason": "not now"})]],
]
HEARD = [
    *[("forecast", '{"city": "Oslo"}'), ("forecast", '{"city": "Rome"}'), ("sundial", "{}")],
    *[("says", "Later."), ("sundial", "{}"), ("says", "No.")],
]


def returned(text: str, status: str = "OK") -> tuple[str, str]:
    wrapped = {"status": status, "message": text, "time": "TIME"}
    return "tool", json.dumps(wrapped, indent=2, ensure_ascii=False)


# The model's context at the end: the role of each message with its text, or the names of the called tools.
CONTEXT = [
    *[("user", QUESTION), ("assistant", ["forecast", "forecast"]), returned(CAFE), returned("No such city.", "Failed")],
    *[("assistant", ["sundial"]), returned("noon"), ("user", NOW), ("assistant", "Later.")],
    *[("user", AGAIN), ("assistant", ["sundial"])],
    returned("Error: request to call tool denied. User reason: not now", "Failed"),
]


def test_the_model_is_shown_what_letta_shows_it_without_the_bridge(world: World, agent_type: str, stream: bool) -> None:
    """Servers without client tools are compared with what newer ones show."""
    if not world.at_least("0.14.0"):
        assert world.version in ("0.12.1", "0.13.0"), "there, these agents make one call at a time"
        return
    through_bridge = shown(world, f"{world.bridge.url}/letta", stream)
    last = through_bridge[-1]
    offered = sorted((_loosely(tool["function"]) for tool in last["tools"]), key=lambda tool: str(tool["name"]))
    assert [_outline(message) for message in last["messages"][1:]] == CONTEXT
    assert offered == TOOLS
    if world.at_least("0.16.2"):
        assert through_bridge == shown(world, world.server.base_url, stream)


def shown(world: World, url: str, stream: bool) -> list[Json]:
    """Has the conversation with a new agent there. Returns the requests to its model without ids and times."""
    agent, before = world.agent(V1_AGENT), len(world.model.requests())
    world.letta("PATCH", f"/v1/agents/{agent.id}", {"parallel_tool_calls": True})
    assert say_all(f"{url}/v1/agents/{agent.id}/messages", stream) == HEARD
    agent.delete()
    return [_plain(request.body) for request in world.model.requests()[before:]]


def say_all(url: str, stream: bool) -> list[tuple[str, str]]:
    """Says everything in turn. Returns the calls and texts of the answers."""
    heard: list[tuple[str, str]] = []
    ids: list[str] = []
    for said in SAID:
        body = {"messages": [_message(one, ids) for one in said], "client_tools": TOOLS}
        form = {"streaming": stream, "stream_tokens": stream}
        answer = requests.post(url, json={**body, **form}, headers=SDK, timeout=120)
        assert answer.status_code == 200, answer.text
        messages = _events(answer.text) if stream else answer.json()["messages"]
        calls = calls_of(messages)
        text = "".join(one["content"] for one in messages if one["message_type"] == "assistant_message")
        ids = [*calls]
        heard += [*calls.values(), *([("says", text)] if text else [])]
    return heard


def _message(said: str | list[tuple[int, Json]], ids: list[str]) -> Json:
    if isinstance(said, str):
        return {"role": "user", "content": said}
    answers = [{"type": "tool", "tool_call_id": ids[number], **given} for number, given in said]
    return {"type": "approval", "approvals": answers}


def _events(text: str) -> list[Json]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]


def _outline(message: Json) -> tuple[str, Any]:
    calls = [call["function"]["name"] for call in message.get("tool_calls") or ()]
    return message["role"], calls or message["content"]


def _loosely(function: Json) -> Json:
    """Returns a function without the marks that Letta adds to an agent's own tools, as stubs are."""
    parameters = {name: value for name, value in function["parameters"].items() if name != "additionalProperties"}
    return {name: value for name, value in function.items() if name != "strict"} | {"parameters": parameters}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return TIMES.sub("TIME", IDS.sub("ID", value)) if isinstance(value, str) else value
