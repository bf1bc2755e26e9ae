"""Keywords of OpenAPI 3.0 and older drafts, in the parameters as Letta gets them."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.errors import InvalidRequest
from bridge.stubs.converter import make_stub
from bridge.stubs.drafts import translate_schema
from bridge.turn import Stub, ToolSpec
from tests.letta_schemas import AS_SENT

LETTERS = {"Letters": {"type": "string", "pattern": "^[a-z]+$"}}
REFERENCE = {"$ref": "#/$defs/Letters"}
NULL = {"type": "null"}


def stub_with(schema: Any, **more: Any) -> Stub:
    parameters = {"type": "object", "properties": {"a": schema, "b": {}}, "$defs": LETTERS, **more}
    return make_stub(ToolSpec("tool", "", parameters), AS_SENT)


@pytest.mark.parametrize(
    ("given_schema", "translated"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"minimum": "0", "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": True, "minimum": 1}, {"exclusiveMaximum": 9, "minimum": 1}),
        ({"minimum": 0, "exclusiveMinimum": False}, {"minimum": 0}),
        ({"exclusiveMaximum": False}, {}),
        ({"items": [{}, True], "type": "array"}, {"prefixItems": [{}, {}], "items": {}, "type": "array"}),
        ({"items": [{}], "additionalItems": {"type": "null"}}, {"prefixItems": [{}], "items": NULL}),
        ({"items": [{}], "additionalItems": False}, {"prefixItems": [{}], "items": {}, "maxItems": 1}),
        (
            {"items": [{}, {}], "additionalItems": False, "maxItems": 1},
            {"prefixItems": [{}, {}], "items": {}, "maxItems": 1},
        ),
        ({"items": [], "additionalItems": False}, {"items": {}, "maxItems": 0}),
        ({"items": {}, "additionalItems": False}, {"items": {}}),
        (
            {"dependencies": {"x": ["y"], "z": {"minProperties": 2}, "u": False}},
            {"dependentRequired": {"x": ["y"]}, "dependentSchemas": {"z": {"minProperties": 2}, "u": {"not": {}}}},
        ),
        (
            {"dependencies": {"x": ["y"], "z": ["y"]}, "dependentRequired": {"x": ["new"]}},
            {"dependentRequired": {"x": ["new"], "z": ["y"]}},
        ),
        (
            {"properties": {"x": {"required": True}, "y": {"required": False}, "z": {"required": ["x"]}}},
            {"properties": {"x": {}, "y": {}, "z": {"required": ["x"]}}, "required": ["x"]},
        ),
        (
            {"properties": {"x": {"required": True}, "y": {"required": True}}, "required": ["y"]},
            {"properties": {"x": {}, "y": {}}, "required": ["y", "x"]},
        ),
        ({"example": 0}, {"examples": [0]}),
        ({"example": 0, "examples": [1]}, {"examples": [1]}),
        ({"example": None}, {}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"], "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"nullable": True, "enum": ["a"]}, {"enum": ["a"]}),
        ({"$dynamicRef": "#/$defs/Letters"}, REFERENCE),
        ({"$recursiveRef": "#/$defs/Letters", "title": "T"}, {**REFERENCE, "title": "T"}),
    ],
)
def test_a_keyword_of_an_older_draft_is_sent_in_todays_form(
    given_schema: dict[str, Any], translated: dict[str, Any]
) -> None:
    stub = stub_with(given_schema)
    parameters = stub.json_schema["parameters"]
    assert parameters["properties"]["a"] == translated
    assert not [change for change in stub.changes if change.startswith("Left out")]


@pytest.mark.parametrize(
    ("given_schema", "translated"),
    [
        ({**REFERENCE, "nullable": True, "title": "T"}, {"title": "T", "anyOf": [REFERENCE, NULL]}),
        ({"allOf": [REFERENCE], "nullable": True}, {"anyOf": [{"allOf": [REFERENCE]}, NULL]}),
        ({"oneOf": [{"const": 1}], "nullable": True}, {"anyOf": [{"oneOf": [{"const": 1}]}, NULL]}),
        ({"anyOf": [{"items": [True]}], "nullable": True}, {"anyOf": [{"prefixItems": [{}], "items": {}}, NULL]}),
    ],
)
def test_nullable_beside_a_reference_or_alternatives_allows_null_and_the_change_is_said(
    given_schema: dict[str, Any], translated: dict[str, Any]
) -> None:
    stub = stub_with(given_schema)
    assert stub.json_schema["parameters"]["properties"]["a"] == translated
    assert stub.changes == ("`nullable` beside a reference or alternatives, read as: or null: properties.a.",)


def test_the_parameters_as_a_whole_are_never_null() -> None:
    stub = stub_with({}, nullable=True, allOf=[{"required": ["b"]}])
    assert stub.json_schema["parameters"]["type"] == "object"
    assert stub.json_schema["parameters"]["required"] == ["b"]
    assert "anyOf" not in stub.json_schema["parameters"]


def test_a_property_that_says_at_the_top_that_it_is_required_is_required() -> None:
    parameters = stub_with({"type": "string", "required": True}).json_schema["parameters"]
    assert (parameters["required"], parameters["properties"]["a"]) == (["a"], {"type": "string"})


def test_a_second_reference_is_kept_beside_the_first() -> None:
    schema, _ = translate_schema({"$ref": "#/$defs/A", "$dynamicRef": "#/$defs/B", "allOf": [{}]})
    assert schema == {"$ref": "#/$defs/A", "allOf": [{}, {"$ref": "#/$defs/B"}]}


def test_a_reference_to_an_anchor_leads_nowhere_and_that_is_said() -> None:
    stub = stub_with({"$dynamicRef": "#node"}, **{"$dynamicAnchor": "node"})
    assert "$ref" not in stub.json_schema["parameters"]["properties"]["a"]
    assert stub.changes == ("The reference '#node' leads nowhere in the client's schema: any value will do.",)


@pytest.mark.parametrize("reference", ["#/properties/b/items/1", "#/properties/b/x-inner/Word", "#/definitions/G/Word"])
def test_a_reference_into_what_is_not_sent_is_followed(reference: str) -> None:
    word = {"type": "string", "minLength": "2"}
    holder = {"type": "array", "items": [{}, word], "x-inner": {"Word": word}}
    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": reference}, "b": holder},
        "definitions": {"G": {"Word": word}},
    }
    stub = make_stub(ToolSpec("tool", "", parameters), AS_SENT)
    assert stub.json_schema["parameters"]["properties"]["a"] == {"type": "string", "minLength": 2}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"items": [{}, {"minimum": "x"}]}, ".items[1].minimum"),
        ({"items": [{}], "additionalItems": {"minimum": "x"}}, ".additionalItems.minimum"),
        ({"dependencies": {"x": {"minimum": "x"}}}, ".dependencies.x.minimum"),
        ({"minimum": "x", "exclusiveMinimum": True}, ".minimum"),
        ({**REFERENCE, "nullable": True, "properties": {"x": 5}}, ".properties.x"),
    ],
)
def test_an_error_names_the_place_that_the_client_wrote(schema: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stub_with(schema)
    assert caught.value.param == f"tools[0].function.parameters.properties.a{place}"
