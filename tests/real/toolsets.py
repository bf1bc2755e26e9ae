"""Client tools, and how a Letta server and an agent's model see them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import requests

from bridge.interception.choose import choose_method
from bridge.letta.capabilities import AgentModel, agent_loop, read_features, schema_form
from bridge.stubs.converter import make_stub
from bridge.sync.ownership import OWNER
from bridge.turn import SchemaForm, Stub, ToolChoice, ToolSpec
from testbed.agents import MODEL
from testbed.service import Service
from tests.real.world import Agent, World
from tests.sse_checker import Json

LETTA_PARAMETERS = ("thinking", "inner_thoughts", "request_heartbeat")


def expected_stubs(agent: Agent, specs: Sequence[ToolSpec]) -> tuple[list[Stub], SchemaForm]:
    """Returns the stubs that an agent should get for these tools, and their form."""
    features = read_features(agent.world.version, agent.world.letta("GET", "/openapi.json"))
    loop = agent_loop(features.version, agent.type)
    method = choose_method(features, loop, "auto", ToolChoice())
    form = schema_form(features, loop, AgentModel(MODEL, "openai"), runs_stubs=method.runs_stubs)
    return [make_stub(spec, form, kind=method.stub_kind) for spec in specs], form


def unique(name: str) -> str:
    """Returns a name that no other test uses: all tools of a server share one namespace."""
    return f"{name}_{uuid.uuid4().hex[:8]}"


def tool(name: str, description: str = "Reads a file.", **properties: Json) -> Json:
    properties = properties or {"path": {"type": "string", "description": "Which file"}}
    parameters = {"type": "object", "properties": properties, "required": [*properties]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def offered(world: World) -> dict[str, str | None]:
    """Returns the descriptions, by name, of the tools that the model was offered last."""
    return {name: one.description for name, one in world.model.last_request().tools.items()}


def stubs_of(agent: Agent) -> dict[str, Json]:
    """Returns the rows of the agent's stubs, by the client's name."""
    return {client_name(row): row for row in agent.state()["tools"] if is_ours(row)}


def stubs_on(world: World, part: str) -> list[Json]:
    """Returns the rows of all stubs on the server whose client's name contains this part."""
    rows = world.letta("GET", "/v1/tools/", limit=100_000)
    return [row for row in rows if is_ours(row) and part in client_name(row)]


def is_ours(row: Json) -> bool:
    return OWNER in (row["tags"] or ())


def client_name(row: Json) -> str:
    mark = f"{OWNER}:client-name="
    return str(next((tag.removeprefix(mark) for tag in row["tags"] if tag.startswith(mark)), ""))


def make_tool(world: World, name: str, tags: Sequence[str] | None = (), **more: Any) -> Json:
    """Makes a tool as another owner does. With None as `tags`, it keeps the tags of an existing tool of that name."""
    body = {
        "source_code": f"def {name}(**kwargs):\n    return 'mine'\n",
        "source_type": "python",
        "json_schema": {
            "name": name,
            "description": "Mine.",
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
        **({} if tags is None else {"tags": list(tags)}),
        "description": "Mine.",
        **more,
    }
    made: Json = world.letta("PUT", "/v1/tools/", body)
    return made


def delete_tool(world: World, tool_id: str) -> None:
    world.letta("DELETE", f"/v1/tools/{tool_id}")


def whole_state(agent: Agent) -> Json:
    """Returns all that Letta says of an agent, without what every message changes, and sorted where Letta is not."""
    state = agent.state()
    for moving in ("updated_at", "message_ids", "last_run_completion", "last_run_duration_ms", "last_stop_reason"):
        state.pop(moving, None)
    state["metadata"] = state["metadata"] or {}  # Letta makes no null of it again
    for unordered in ("tools", "blocks"):
        if state.get(unordered):
            state[unordered] = sorted(state[unordered], key=lambda row: str(row["id"]))
    return state


def post(agent: Agent, bridge: Service | None = None, **body: Any) -> Json:
    """Sends a request with this body."""
    url = (bridge or agent.world.bridge).url
    answer = requests.post(f"{url}/v1/chat/completions", json={"model": agent.name, **body}, timeout=120)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found
