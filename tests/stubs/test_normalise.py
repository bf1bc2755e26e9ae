from __future__ import annotations

from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs import normalise
from bridge.stubs.normalise import normalise_schema


def chain(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "STRING"}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize("schemas", [10, 1000])
def test_each_schema_is_read_once(monkeypatch: pytest.MonkeyPatch, schemas: int) -> None:
    read: list[Any] = []
    original = normalise.translate_schema
    monkeypatch.setattr(normalise, "translate_schema", lambda schema: read.append(schema) or original(schema))
    wide = {"anyOf": [{"not": {"type": "string"}} for _ in range(schemas)]}
    normalise_schema(wide)
    assert len(read) == 1 + 2 * schemas


def test_a_schema_of_any_depth_is_read_without_recursion() -> None:
    schema = normalise_schema(chain(20_000)).schema
    for _ in range(20_000):
        schema = schema["items"]
    assert schema == {"type": "string"}


def test_the_place_of_a_fault_deep_inside_is_named_with_names_cut_short() -> None:
    fault = {"properties": {"p" * 70: {"anyOf": [{}, {"not": {"items": {"format": 5}}}]}}}
    with pytest.raises(InvalidRequest) as caught:
        normalise_schema({"$defs": {"A": {"if": fault}}}, "tools[0]")
    assert caught.value.param == f"tools[0].$defs.A.if.properties.{'p' * 64}.anyOf[1].not.items.format"


def test_a_sentence_names_few_places_and_counts_the_others() -> None:
    properties = {f"p{number}": {"minimum": "1"} for number in range(9)}
    (change,) = normalise_schema({"properties": properties}).changes
    named = ", ".join(f"properties.p{number}.minimum" for number in range(5))
    assert change == f"Given as text and read as a number: {named} and 4 more."


def test_true_and_false_become_schemas_and_impossible_properties_say_so() -> None:
    schema = {"properties": {"a": True, "b": False}, "not": False, "additionalProperties": False, "items": False}
    assert normalise_schema(schema).schema == {
        "properties": {"a": {}, "b": {"not": {}, "description": "no value is allowed: leave it out"}},
        "not": {"not": {}},
        "additionalProperties": False,
        "items": {},
        "maxItems": 0,
    }


def test_a_pattern_that_not_every_provider_knows_is_said_in_words() -> None:
    result = normalise_schema({"properties": {"name": {"title": "Name", "pattern": r"^\p{L}+$"}}})
    described = {"title": "Name", "description": 'Name (matching the regular expression "^\\\\p{L}+$")'}
    assert result.schema["properties"]["name"] == described
    assert result.changes == (
        "Said in words, because not every model provider knows the regular expression: properties.name.pattern.",
    )


def test_names_by_a_pattern_that_not_every_provider_knows_are_allowed_and_said_in_words() -> None:
    schema = {"patternProperties": {"(": {}, "^a": True}, "additionalProperties": False}
    assert normalise_schema(schema).schema == {
        "patternProperties": {"^a": {}},
        "additionalProperties": True,
        "description": 'Other properties may have names matching the regular expression "("',
    }


def test_only_a_property_needs_a_name() -> None:
    schema: dict[str, Any] = {keyword: {"": {}} for keyword in ("$defs", "patternProperties", "dependentSchemas")}
    assert normalise_schema(schema).schema == schema
    with pytest.raises(InvalidRequest, match="has an empty name"):
        normalise_schema({"items": {"properties": {"": {}}}})
