"""The schemas of each value in a call's arguments, and the work to find them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.stubs.arguments import restore_arguments
from bridge.stubs.converter import make_stub
from bridge.stubs.normalise import normalise_schema
from bridge.stubs.references import Definitions
from bridge.stubs.value_schemas import MAX_WORK, SchemaFinder, TooMuchWork, ValueSchemas
from bridge.turn import ToolSpec
from tests.letta_schemas import AS_SENT, STRICT

NODE = {"$ref": "#/$defs/node"}


def condition(operator: str) -> dict[str, Any]:
    properties = {"op": {"const": operator}, "left": NODE, "right": NODE, "note": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": ["op"]}


FILTER: dict[str, Any] = {
    "type": "object",
    "properties": {"where": NODE},
    "required": ["where"],
    "$defs": {"node": {"anyOf": [condition(name) for name in ("and", "or", "not", "eq", "lt", "gt")]}},
}


def nested(depth: int, **more: Any) -> dict[str, Any]:
    return {"op": "and", **more, **({"left": nested(depth - 1, **more)} if depth else {})}


def finder(schema: dict[str, Any]) -> SchemaFinder:
    return SchemaFinder(Definitions(normalise_schema(schema).schema, schema))


def whole(found: SchemaFinder) -> ValueSchemas:
    return found.find([found.definitions.root])


def work_for(depth: int) -> int:
    """Returns how often a schema is looked at for a filter of this depth."""
    found = finder(FILTER)
    here = whole(found).member("where")
    for _ in range(depth):
        assert here.is_optional("note")
        assert here.member("note").kinds == {"string"}
        here = here.member("left")
    return found.work


def test_the_work_does_not_grow_with_the_depth_of_a_recursive_schema() -> None:
    work = {depth: work_for(depth) for depth in (4, 8, 16)}
    assert work[8] - work[4] <= 4 * 10
    assert work[16] - work[8] <= 8 * 10
    assert work[16] < 300


@pytest.mark.parametrize("form", [AS_SENT, STRICT], ids=["as sent", "strict"])
def test_deep_arguments_of_a_recursive_tool_are_restored(form: Any) -> None:
    stub = make_stub(ToolSpec("search", "", FILTER), form)
    given, expected = nested(60, note=None), nested(60)
    arguments = json.dumps({"where": given if form is AS_SENT else json.dumps(given)})
    assert json.loads(restore_arguments(stub, arguments)) == {"where": expected}


def test_values_with_the_same_schemas_share_them() -> None:
    here = whole(finder(FILTER)).member("where").member("left")
    assert here.member("left") is here
    assert here.member("right") is not here
    assert here.member("unknown") is here.member("other")


def test_a_schema_counts_once_whichever_ways_lead_to_it() -> None:
    shared = {"$ref": "#/$defs/A"}
    found = finder({"allOf": [shared, {"anyOf": [shared, shared]}], "$defs": {"A": {"oneOf": [shared, {}]}}})
    parts = [part for group in found.groups_of([found.definitions.root]) for part in group.parts]
    assert len({id(part) for part in parts}) == len(parts) == 8
    assert found.work == 11


def test_more_work_than_the_limit_is_refused() -> None:
    alternatives = [{"type": "object", "properties": {f"p{place}": {}}} for place in range(1000)]
    found = finder({"type": "object", "anyOf": alternatives})
    here = whole(found)
    with pytest.raises(TooMuchWork):
        list(map(here.member, [f"p{place}" for place in range(1000)]))
    assert found.work < MAX_WORK + 2 * len(alternatives)


def test_items_behind_the_described_ones_share_their_schemas() -> None:
    items = {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}}
    here = whole(finder({"anyOf": [items, {"type": "array", "items": {"type": "null"}}]}))
    kinds = [here.item(place).kinds for place in (0, 1, 2, 9)]
    assert kinds == [{"string", "null"}, {"integer", "null"}, {"boolean", "null"}, {"boolean", "null"}]
    assert here.item(2) is here.item(9)


def test_a_property_is_optional_if_it_is_declared_and_required_nowhere() -> None:
    one = {"properties": {"a": {}, "b": {}}, "required": ["a"]}
    here = whole(finder({"anyOf": [one, {"properties": {"a": {}}}], "additionalProperties": {}}))
    assert [name for name in ("a", "b", "c") if here.is_optional(name)] == ["b"]


def test_a_name_without_a_property_may_have_the_schemas_of_patterns_and_of_other_names() -> None:
    schema = {"patternProperties": {"^x": {"type": "null"}}, "additionalProperties": {"type": "string"}}
    assert whole(finder(schema)).member("y").kinds == {"null", "string"}
    assert whole(finder({})).member("y").kinds == whole(finder({"type": "object"})).member("y").kinds


@pytest.mark.parametrize(
    ("schema", "text", "allowed"),
    [
        ({}, "a", True),
        ({"type": ["string", "null"]}, "a", True),
        ({"type": "integer"}, "a", False),
        ({"enum": ["a", 1]}, "a", True),
        ({"enum": ["b", 1]}, "a", False),
        ({"const": "a"}, "a", True),
        ({"const": "b"}, "a", False),
        ({"anyOf": [{"enum": ["b"]}, {"type": "string"}]}, "a", True),
        ({"anyOf": [{"enum": ["b"]}, {"type": "integer"}]}, "a", False),
        ({"allOf": [{"enum": ["a", "b"]}, {"type": "string"}]}, "a", True),
        ({"allOf": [{"enum": ["a", "b"]}, {"const": "b"}]}, "a", False),
        ({"$ref": "#/$defs/B"}, "b", True),
        ({"$ref": "#/$defs/B"}, "a", False),
        ({"$ref": "#/$defs/Circle"}, "a", True),
        ({"$ref": "#/$defs/Missing"}, "a", True),
    ],
)
def test_types_and_lists_of_values_say_whether_a_text_is_allowed(
    schema: dict[str, Any], text: str, allowed: bool
) -> None:
    definitions = {"B": {"const": "b"}, "Circle": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"type": "string"}]}}
    here = whole(finder({"properties": {"a": schema}, "$defs": definitions})).member("a")
    assert here.allows(text, "string") is allowed
