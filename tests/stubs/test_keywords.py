"""Malformed keywords: each is refused with its place and what is expected, or mended if its meaning is plain."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import InvalidRequest
from bridge.stubs.converter import make_stub
from bridge.stubs.keywords import EMPTY_ENUM, FORMS, FROM_ONE_EXAMPLE, FROM_TEXT, SILENT
from bridge.turn import SchemaForm, Stub, ToolSpec
from tests.letta_schemas import AS_SENT
from tests.letta_schemas import FORMS as SCHEMA_FORMS
from tests.strategies import values
from tests.stubs.test_properties import hostile

TYPES = "one of array, boolean, integer, null, number, object, string, or a list of them"
TEXT = "a string"
NUMBER = "a number"
COUNT = "an integer of 0 or more"
BOOLEAN = "true or false"
SCHEMA = "a schema (an object)"
OR_BOOLEAN = "a schema, true or false"
SCHEMAS = "a list of one or more schemas"
MEMBERS = "an object whose members are schemas"
NAMES = "a list of property names"
MAPS_TO_NAMES = "an object of lists of property names"
# A keyword, a wrong value, and what is expected. A place inside the value stands before a colon.
WRONG: list[tuple[str, Any, str]] = [
    ("type", 5, TYPES),
    ("type", "float", TYPES),
    ("type", [], TYPES),
    ("type", ["string", 5], TYPES),
    ("type", [{"type": "string"}], TYPES),
    ("type", {"type": "string"}, TYPES),
    ("enum", "x", "a list of values"),
    ("enum", {"a": 1}, "a list of values"),
    ("title", 5, TEXT),
    ("description", ["x"], TEXT),
    ("format", True, TEXT),
    ("pattern", 5, TEXT),
    ("contentEncoding", 5, TEXT),
    ("contentMediaType", {}, TEXT),
    ("contentSchema", 5, SCHEMA),
    ("minimum", "abc", NUMBER),
    ("minimum", True, NUMBER),
    ("minimum", "1e999", NUMBER),
    ("minimum", "9" * 5000, NUMBER),
    ("minimum", 10**400, NUMBER),
    ("maximum", -(10**400), NUMBER),
    ("minimum", "", NUMBER),
    ("minimum", " 1", NUMBER),
    ("minimum", "\u0661", NUMBER),
    ("maximum", [], NUMBER),
    ("exclusiveMinimum", True, "a number, or true beside `minimum`"),
    ("exclusiveMaximum", "x", "a number, or true beside `maximum`"),
    ("multipleOf", 0, "a number greater than 0"),
    ("multipleOf", -2, "a number greater than 0"),
    ("multipleOf", 10**400, "a number greater than 0"),
    ("multipleOf", "0", "a number greater than 0"),
    ("minLength", -1, COUNT),
    ("minLength", "-1", COUNT),
    ("maxLength", 10**400, COUNT),
    ("minLength", "one", COUNT),
    ("maxLength", 1.5, COUNT),
    ("maxLength", True, COUNT),
    ("minItems", -1, COUNT),
    ("maxItems", {}, COUNT),
    ("minProperties", "x", COUNT),
    ("maxProperties", 2.5, COUNT),
    ("minContains", [1], COUNT),
    ("maxContains", False, COUNT),
    ("uniqueItems", "yes", BOOLEAN),
    ("uniqueItems", 1, BOOLEAN),
    ("deprecated", "yes", BOOLEAN),
    ("readOnly", 1, BOOLEAN),
    ("writeOnly", [], BOOLEAN),
    ("nullable", "maybe", BOOLEAN),
    ("required", "a", NAMES),
    ("required", [1], NAMES),
    ("required", [["a"]], NAMES),
    ("properties", [], MEMBERS),
    ("properties", {"b": 5}, ".b: " + SCHEMA),
    ("properties", {"b": None}, ".b: " + SCHEMA),
    ("patternProperties", "x", MEMBERS),
    ("patternProperties", {"x": []}, ".x: " + SCHEMA),
    ("additionalProperties", "false", OR_BOOLEAN),
    ("additionalProperties", [], OR_BOOLEAN),
    ("unevaluatedProperties", 5, OR_BOOLEAN),
    ("unevaluatedItems", "x", OR_BOOLEAN),
    ("propertyNames", 5, SCHEMA),
    ("dependentRequired", [], MAPS_TO_NAMES),
    ("dependentRequired", {"a": "b"}, MAPS_TO_NAMES),
    ("dependentRequired", {"a": [1]}, MAPS_TO_NAMES),
    ("dependentSchemas", [], MEMBERS),
    ("dependentSchemas", {"a": 5}, ".a: " + SCHEMA),
    ("dependencies", [], "an object whose members are schemas or lists of property names"),
    ("dependencies", {"a": 5}, ".a: " + SCHEMA),
    ("dependencies", {"a": [1]}, MAPS_TO_NAMES),
    ("items", "x", SCHEMA),
    ("items", 5, SCHEMA),
    ("items", [5], "[0]: " + SCHEMA),
    ("prefixItems", {}, "a list of schemas"),
    ("prefixItems", [{}, "x"], "[1]: " + SCHEMA),
    ("contains", "x", SCHEMA),
    ("allOf", {}, SCHEMAS),
    ("allOf", [], SCHEMAS),
    ("anyOf", ["x"], "[0]: " + SCHEMA),
    ("oneOf", [None], "[0]: " + SCHEMA),
    ("not", 5, SCHEMA),
    ("if", [], SCHEMA),
    ("then", "x", SCHEMA),
    ("else", 5, SCHEMA),
    ("$ref", 1, TEXT),
    ("$dynamicRef", 1, TEXT),
    ("$recursiveRef", True, TEXT),
    ("$defs", [], MEMBERS),
    ("$defs", {"A": 5}, ".A: " + SCHEMA),
    ("definitions", 5, MEMBERS),
    ("definitions", {"A": ["x"]}, ".A: " + SCHEMA),
]


def stub_with(schema: dict[str, Any]) -> Stub:
    """Returns a tool with the schema inside a parameter. Letta needs other forms of some parameters themselves."""
    parameters = {"type": "object", "properties": {"a": {"not": schema}}}
    return make_stub(ToolSpec("tool", "", parameters), AS_SENT, where="tools[2].function")


def sent(schema: dict[str, Any]) -> Any:
    return stub_with(schema).json_schema["parameters"]["properties"]["a"]["not"]


def names(wrong: list[tuple[str, Any, str]]) -> list[str]:
    return [f"{keyword} {value!r:.20}" for keyword, value, _ in wrong]


def is_valid(schema: Any) -> bool:
    return jsonschema_rs.meta.is_valid({**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"})


@pytest.mark.parametrize("case", WRONG, ids=names(WRONG))
def test_a_malformed_keyword_is_refused_with_its_place_and_what_is_expected(case: tuple[str, Any, str]) -> None:
    keyword, value, expected = case
    inside, _, wanted = expected.rpartition(": ")
    with pytest.raises(InvalidRequest) as caught:
        stub_with({keyword: value})
    place = f"tools[2].function.parameters.properties.a.not.{keyword}{inside}"
    assert (caught.value.status, caught.value.param) == (400, place)
    assert caught.value.message == f"The tool 'tool' is refused: `{place}` must be {wanted}."


def test_the_table_has_a_malformed_value_of_every_keyword_that_can_have_one() -> None:
    assert FORMS.keys() - {keyword for keyword, _, _ in WRONG} == {"const", "default", "examples"}


@pytest.mark.parametrize(
    ("given_schema", "mended", "change"),
    [
        ({"minimum": "0"}, {"minimum": 0}, FROM_TEXT),
        ({"maximum": "-2.5e1"}, {"maximum": -25.0}, FROM_TEXT),
        ({"exclusiveMinimum": "1"}, {"exclusiveMinimum": 1}, FROM_TEXT),
        ({"multipleOf": "0.5"}, {"multipleOf": 0.5}, FROM_TEXT),
        ({"minLength": "1"}, {"minLength": 1}, FROM_TEXT),
        ({"maxLength": "3.0"}, {"maxLength": 3}, FROM_TEXT),
        ({"examples": "x"}, {"examples": ["x"]}, FROM_ONE_EXAMPLE),
        ({"examples": {"b": 1}}, {"examples": [{"b": 1}]}, FROM_ONE_EXAMPLE),
        ({"enum": [], "type": "string"}, {"type": "string"}, EMPTY_ENUM),
    ],
)
def test_a_malformed_keyword_with_a_plain_meaning_is_mended_and_the_change_is_said(
    given_schema: dict[str, Any], mended: dict[str, Any], change: str
) -> None:
    stub = stub_with(given_schema)
    (keyword, *_) = given_schema
    assert repr(sent(given_schema)) == repr(mended)
    assert stub.changes == (f"{change}: properties.a.not.{keyword}.",)


@pytest.mark.parametrize(
    ("given_schema", "same"),
    [
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": ["Integer", "null", "integer"]}, {"type": ["integer", "null"]}),
        ({"minLength": 3.0}, {"minLength": 3}),
        ({"enum": ["b", "a", "b"]}, {"enum": ["b", "a"]}),
        ({"enum": [1, True, 1.0, "1", False, 0]}, {"enum": [1, True, "1", False, 0]}),
        ({"enum": [[1], [1], {"a": 1, "b": 2}, {"b": 2, "a": 1}]}, {"enum": [[1], {"a": 1, "b": 2}]}),
        ({"required": ["b", "b"]}, {"required": ["b"]}),
        ({"dependentRequired": {"b": ["c", "c"]}}, {"dependentRequired": {"b": ["c"]}}),
        ({"type": "array", "prefixItems": []}, {"type": "array", "items": {}}),
        ({"title": None, "enum": None, "const": None}, {"const": None}),
    ],
)
def test_another_spelling_of_the_same_is_sent_without_a_word(
    given_schema: dict[str, Any], same: dict[str, Any]
) -> None:
    assert repr(sent(given_schema)) == repr(same)
    assert stub_with(given_schema).changes == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": 0, "maximum": 1.5, "exclusiveMinimum": -1, "exclusiveMaximum": 10**30, "multipleOf": 0.01},
        {"minLength": 0, "maxLength": 2**53, "pattern": r"^\w+$", "format": "no-such-format"},
        {"type": "array", "items": {}, "prefixItems": [{}], "contains": {}, "minContains": 0, "uniqueItems": False},
        {"properties": {"type": {}, "$ref": {}}, "required": [], "additionalProperties": False, "minProperties": 0},
        {"enum": ["", None, 0, False, [], {}], "default": [], "examples": [None], "deprecated": True},
        {"if": {}, "then": {"not": {}}, "else": {}, "unevaluatedItems": False, "unevaluatedProperties": True},
        {"dependentRequired": {"a": []}, "dependentSchemas": {"a": {}}, "propertyNames": {"pattern": "^a"}},
    ],
)
def test_a_well_formed_keyword_is_sent_as_it_is(schema: dict[str, Any]) -> None:
    assert sent(schema) == schema
    assert stub_with(schema).changes == ()


@pytest.mark.parametrize("keyword", sorted(SILENT))
def test_a_keyword_that_says_nothing_to_a_model_is_not_sent_whatever_its_value(keyword: str) -> None:
    for value in ("#x", 5, {"a": 1}):
        assert sent({"type": "string", keyword: value}) == {"type": "string"}
        assert stub_with({"type": "string", keyword: value}).changes == ()


def test_a_keyword_that_json_schema_does_not_have_is_not_sent() -> None:
    schema = {"type": "string", "x-order": 1, "pattrn": 5, "enumNames": ["A"]}
    assert sent(schema) == {"type": "string"}
    assert stub_with(schema).changes == (
        "Left out, because JSON Schema has no such keyword: x-order, pattrn, enumNames.",
    )


keyword_names = st.sampled_from(sorted([*FORMS, *SILENT, "example", "x-odd"]))
junk = st.one_of(values, st.dictionaries(keyword_names, values, max_size=3))
junk_schemas = st.dictionaries(keyword_names, st.one_of(junk, st.lists(junk, max_size=3)), max_size=4)


def converted(parameters: dict[str, Any], form: SchemaForm) -> Stub | InvalidRequest:
    try:
        return make_stub(ToolSpec("tool", "", parameters), form)
    except InvalidRequest as fault:
        return fault


@hostile
@given(junk_schemas, st.booleans())
def test_whatever_a_keyword_holds_the_schema_is_refused_or_valid(schema: dict[str, Any], at_the_top: bool) -> None:
    parameters = {"type": "object", **(schema if at_the_top else {"properties": {"a": schema}})}
    for form in SCHEMA_FORMS.values():
        result = converted(parameters, form)
        if isinstance(result, Stub):
            assert is_valid(result.json_schema["parameters"])
        else:
            assert result.message.startswith("The tool 'tool' is refused: `tools[0].function.parameters")
            assert (result.param or "").startswith("tools[0].function.parameters")
