"""A call's arguments reach the client as the model meant them, in whatever form the server shows the tool to it."""

from __future__ import annotations

import json

import pytest

from bridge.turn import ToolSpec
from tests.model_side import arguments_from_model
from tests.real.talk import ANSWER, Talk, calling
from tests.real.toolsets import expected_stubs
from tests.real.world import Agent
from tests.sse_checker import Json

pytestmark = [pytest.mark.real, pytest.mark.strict]

NODE = {"$ref": "#/$defs/node"}


def condition(operator: str) -> Json:
    properties = {"op": {"const": operator}, "left": NODE, "right": NODE, "note": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": ["op"]}


PARAMETERS: Json = {
    "type": "object",
    "properties": {
        "where": NODE,
        "title": {"type": "string"},
        "label": {"type": ["string", "null"]},
        "note": {"type": "string"},
        "count": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    },
    "required": ["where", "title"],
    "$defs": {"node": {"anyOf": [condition(name) for name in ("and", "or", "not", "eq", "lt", "gt")]}},
}
SEARCH = {"type": "function", "function": {"name": "search", "description": "Searches.", "parameters": PARAMETERS}}


def nested(depth: int, **more: None) -> Json:
    return {"op": "and", **more, **({"left": nested(depth - 1, **more), "right": {"op": "eq"}} if depth else {})}


def call_of_model(agent: Agent, meant: Json) -> str:
    """Returns the line of a script for a call by a model that gives all arguments, and `count` as 3.0."""
    (stub,), form = expected_stubs(agent, [ToolSpec("search", "Searches.", PARAMETERS)])
    given = arguments_from_model(stub, {**meant, "where": nested(12, note=None)}, not form.as_sent)
    given.setdefault("note", None)
    for added in ("thinking", "request_heartbeat"):
        del given[added]
    given["count"] = "3.0" if ("count",) in stub.as_text else 3.0
    return calling("search*", **given)


@pytest.mark.parametrize(
    "meant",
    [{"title": "null", "label": None}, {"title": "x", "label": "null", "note": "null"}],
    ids=["null", "the text null"],
)
@pytest.mark.two_servers
def test_nested_values_nulls_and_numbers_come_back(agent: Agent, stream: bool, meant: Json) -> None:
    expected = {"where": nested(12), **meant, "count": 3}
    talk = Talk(agent, SEARCH, stream=stream)
    reply = talk.say(f"Find it.\n{call_of_model(agent, expected)}\n{ANSWER}")
    assert reply.calls == [("search", expected)]
    assert not isinstance(json.loads(reply.message["tool_calls"][0]["function"]["arguments"])["count"], str)
    assert talk.give("found").text == "found"
    assert [line for line in talk.story() if line.startswith("result of search")] == ["result of search: found"]
