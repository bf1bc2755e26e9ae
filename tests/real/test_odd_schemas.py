"""Tools whose arguments have no names, or whose schema has parts that do not fit together."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from bridge.interception.choose import choose_method
from bridge.letta.capabilities import AgentModel, agent_loop, read_features, schema_form
from bridge.stubs.converter import make_stub
from bridge.turn import SchemaForm, ToolChoice, ToolSpec
from testbed.agents import MODEL
from tests.model_side import arguments_from_model
from tests.real.choice import IS_WHOLE
from tests.real.toolsets import LETTA_PARAMETERS, stubs_of
from tests.real.world import Agent, World
from tests.sse_checker import Json

pytestmark = pytest.mark.real

TEXT: Json = {"type": "string"}
CLOSED_PART: Json = {"type": "object", "properties": {"x": {"type": "integer"}}, "additionalProperties": False}
# For each tool: its parameters, arguments that must reach the client, and words that the model must read somewhere.
TOOLS: dict[str, tuple[Json, Json, str]] = {
    "map_of_text": ({"type": "object", "additionalProperties": TEXT}, {"colour": "red"}, ""),
    "map_of_anything": ({"type": "object", "additionalProperties": True}, {"a": [1], "b": {"c": None}}, ""),
    "map_of_patterns": ({"type": "object", "patternProperties": {"^x-": TEXT}}, {"x-tag": "a"}, "^x-"),
    "one_at_least": ({"type": "object", "minProperties": 1}, {"any": 1}, "minProperties"),
    "condition": ({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1, "b": 2}, "then"),
    "name_and_map": (
        {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": TEXT, "required": ["id"]},
        {"id": 1, "colour": "red"},
        "",
    ),
    "elsewhere": ({"$ref": "https://example.org/a.json"}, {"year": 2024}, "https://example.org/a.json"),
    "barred": ({"type": "object", "properties": {"a": TEXT, "b": False}, "required": ["a"]}, {"a": "x"}, ""),
    "parts": (
        {"type": "object", "allOf": [CLOSED_PART, {"properties": {"y": TEXT}}]},
        {"x": 1},
        "additionalProperties",
    ),
    "nested": (
        {"type": "object", "properties": {"env": {"type": "object", "minProperties": 1}}},
        {"env": {"A": "1"}},
        "",
    ),
}

# All are called in complete runs.
CALLED = ("map_of_text", "name_and_map", "elsewhere")


@pytest.mark.two_servers
def test_what_a_schema_allows_without_names_is_offered_and_reaches_the_client(world: World, agent: Agent) -> None:
    form = form_for(world, agent)
    stubs = {name: make_stub(ToolSpec(name, "Does it.", tool[0]), form) for name, tool in TOOLS.items()}
    tools = [tool_of(name) for name in TOOLS]
    assert agent.ask("!say ok", tools=tools).text == "ok"
    shown = {one["function"]["name"]: one["function"] for one in world.model.last_request().body["tools"]}
    placed = stubs_of(agent)
    for name, (_, arguments, words) in TOOLS.items():
        on_server = placed[name]["name"] if name in placed else name
        given = arguments_from_model(stubs[name], arguments, forced=False)
        own = {key: value for key, value in given.items() if key not in LETTA_PARAMETERS}
        jsonschema.validate(own, without_forced(shown[on_server]["parameters"], stubs[name].json_schema["parameters"]))
        assert words in json.dumps(shown[on_server]), name
        if IS_WHOLE or name in CALLED:
            reply = agent.ask(f"!call {on_server} {json.dumps(own)}", tools=tools)
            assert reply.calls == [(name, arguments)]
    assert agent.ask("!say still here").text == "still here"


def form_for(world: World, agent: Agent) -> SchemaForm:
    features = read_features(world.version, world.letta("GET", "/openapi.json"))
    loop = agent_loop(features.version, agent.type)
    method = choose_method(features, loop, "auto", ToolChoice())
    return schema_form(features, loop, AgentModel(MODEL, "openai"), runs_stubs=method.runs_stubs)


def tool_of(name: str) -> Json:
    function = {"name": name, "description": "Does it.", "parameters": TOOLS[name][0]}
    return {"type": "function", "function": function}


def without_forced(shown: Json, declared: Json) -> dict[str, Any]:
    """Returns the schema without Letta's own arguments, and without the names that only Letta requires."""
    return {**shown, "required": declared["required"]}
