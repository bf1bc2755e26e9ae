from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.reply_format.helper import LONGEST_FAULT, Unchecked, answer_job, find_schema_fault, find_value_fault

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
    "additionalProperties": False,
}
CITY = {"$defs": {"city": {"type": "string"}}, "type": "object", "properties": {"in": {"$ref": "#/$defs/city"}}}
TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "size": {"type": "integer"}}, "required": ["size"]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("", {}),
        (PERSON, {"name": "Ada", "ages": [1, 2]}),
        (CITY, {"in": "Oslo"}),
        (TREE, {"left": {"left": {"size": 1}, "size": 2}, "size": 3}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "integer"}, 10**30),
        ({"format": "a-format-of-its-own"}, "x"),
        ({"$ref": "#"}, 1),
        ({"allOf": [{"$ref": "#"}]}, 1),
    ],
)
def test_a_fitting_value_has_no_fault(schema: Any, value: Any) -> None:
    assert find_value_fault(value, json.dumps(schema) if schema else "") == ""


@pytest.mark.parametrize(
    ("schema", "value", "fault"),
    [
        ("", [], "the JSON value is not an object"),
        (PERSON, {"name": 1}, "at ['name']: the value is not of type \"string\""),
        (PERSON, {"name": "Ada", "ages": [1, "x"]}, "at ['ages'][1]: the value is not of type \"integer\""),
        (PERSON, {}, '"name" is a required property'),
        (PERSON, {"name": "Ada", "x": 1}, "Additional properties are not allowed ('x' was unexpected)"),
        (TREE, {"left": {}, "size": 1}, "at ['left']: \"size\" is a required property"),
        ({"enum": ["a", "b"]}, "c", 'the value is not one of "a" or "b"'),
        ({"format": "date-time"}, "today", 'the value is not a "date-time"'),
        ({"pattern": "^(a+)+$"}, "a" * 60 + "b", 'the value does not match "^(a+)+$"'),
    ],
)
def test_the_fault_says_what_is_wrong_and_where(schema: Any, value: Any, fault: str) -> None:
    assert find_value_fault(value, json.dumps(schema) if schema else "") == fault


def test_a_fault_is_short_and_in_one_line() -> None:
    fault = find_value_fault("x", json.dumps({"enum": ["a\nb" * 1000, "c"]}))
    assert len(fault) <= 2 * LONGEST_FAULT
    assert "\n" not in fault


def test_a_pattern_that_backtracks_without_end_is_not_called_a_fault_of_the_value() -> None:
    with pytest.raises(Unchecked, match="backtracking"):
        find_value_fault("a" * 50 + "b", json.dumps({"pattern": r"^(?=(a|aa)+$)(a|aa)+\1$"}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"properties": []},
        {"required": "name"},
        {"pattern": "("},
        {"pattern": "((a{1000}){1000}){1000}"},
        {"minLength": -1},
        {"$ref": "#/$defs/none"},
        {"$schema": "http://127.0.0.1:9/schema"},
    ],
)
def test_an_unusable_schema_has_a_fault(schema: Any) -> None:
    assert find_schema_fault(json.dumps(schema))


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:9/x", "https://example.com/x", "file:///etc/passwd", "other.json"]
)
@pytest.mark.parametrize("within", [lambda one: one, lambda one: {"properties": {"a": {"items": one}}}])
def test_a_reference_to_another_document_is_a_fault(address: str, within: Any) -> None:
    assert "is not present in a registry" in find_schema_fault(json.dumps(within({"$ref": address})))


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("I don't know.", "it contains no JSON value instead of one"),
        ('{"a": 1} {"a": 2}', "it contains 2 JSON values instead of one"),
        ("[]", "the JSON value is not an object"),
        ('{"a": 1', "it is not valid JSON: Expecting ',' delimiter: line 1 column 8 (char 7)"),
        ("[" * 100_000, "it is not valid JSON: the value is nested too deep"),
    ],
)
def test_a_reply_without_one_fitting_value_has_a_fault(reply: str, fault: str) -> None:
    assert answer_job({"schema": "", "reply": reply})["fault"] == fault


def test_the_value_of_a_reply_is_returned_as_it_is_written() -> None:
    job = {"schema": json.dumps(PERSON), "reply": 'Here: {"name":  "Ada"}!'}
    assert answer_job(job) == {"value": '{"name":  "Ada"}', "fault": ""}
